"""Prompts of a file: any text as the answer, or one of the options of each line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hunch
from hunch.core import HunchWarning, InadmissibleActionError, UsageError

PLANTS = [
    {"prompt": "A fern is a", "options": ["plant", "stone"], "answer": "plant"},
    {"prompt": [{"role": "user", "content": "Slate is a"}], "options": ["stone", "plant", "cloud"]},
]


def file_of(tmp_path: Path, rows: list[Any]) -> str:
    file = tmp_path / "prompts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def test_an_answer_is_one_of_the_options_of_its_line(tmp_path: Path) -> None:
    file = file_of(tmp_path, PLANTS)
    hunch.envs.check(hunch.make("hunch/Prompts-v0", file=file))
    env = hunch.make("hunch/Prompts-v0", file=file, count=1)
    observation, info = env.reset(seed=0)
    assert (observation, info["actions"]) == ("A fern is a", ("plant", "stone"))
    assert "free_text" not in info
    with pytest.raises(InadmissibleActionError):
        env.step("cloud")
    _, reward, terminated, _, info = env.step("plant")
    assert (reward, terminated, info["success"]) == (1.0, True, True)
    assert [state.actions for state in hunch.make("hunch/Prompts-v0", file=file).unwrapped.prompts] == [
        ("plant", "stone"),
        ("stone", "plant", "cloud"),
    ]


def test_an_answer_of_null_is_none(tmp_path: Path) -> None:
    """Tables that are written as JSON have null where a line has no answer: the text "None" is not right."""
    file = tmp_path / "prompts.jsonl"
    rows = [{"prompt": "A", "answer": None}, {"prompt": "A", "answer": None, "options": ["None", "b"]}]
    for row in rows:
        file.write_text(json.dumps(row) + "\n")
        env = hunch.make("hunch/Prompts-v0", file=str(file))
        env.reset(seed=0)
        _, reward, terminated, _, info = env.step("None")
        assert (reward, terminated, info["success"]) == (0.0, True, False)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([PLANTS[0], {"prompt": "A rose is a"}], "1 of the 2 prompts .* have options: all or none"),
        ([{"prompt": "A", "options": ["one"]}], "Line 1 .* at least two different texts"),
        ([{"prompt": "A", "options": ["one", "one"]}], "at least two different texts"),
        ([{"prompt": "A", "options": "one"}], "at least two different texts"),
        ([{"prompt": "A", "options": ["one", "two"], "answer": "three"}], "not among its options: 'three'"),
    ],
)
def test_options_that_nobody_could_choose_from(tmp_path: Path, rows: list[Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        hunch.make("hunch/Prompts-v0", file=file_of(tmp_path, rows))


@pytest.mark.parametrize("answer", [["a"], {"value": 1}])
def test_an_answer_that_no_text_can_equal_is_told(tmp_path, answer):
    file = tmp_path / "prompts.jsonl"
    file.write_text(json.dumps({"prompt": "Which letter?", "answer": answer}) + "\n")
    with pytest.warns(HunchWarning, match="1 prompts .* no text of a model equals it"):
        hunch.make("hunch/Prompts-v0", file=str(file))
