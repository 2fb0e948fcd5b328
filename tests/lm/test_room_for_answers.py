"""How many tokens an answer may have: one rule for all roles, and what was cut is not cut again on resume."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.lm.talker import Talker, chat
from tests.started import answering

from hunch import lm
from hunch.cli.main import main
from hunch.core import HunchWarning, State, World
from hunch.lm.asking import SHORT
from hunch.lm.backends.sampling import THOUGHTS
from hunch.roles import Judge, JudgeConfig, PriorConfig, build_prior

STATE = State("At the lake.", "reach the gift", ("go left", "go right"))
LAKE = "hunch/FrozenLake-v0"


def brief(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Answer with the first item of the list at once."""
    if not path.endswith("/chat/completions"):
        return 404, {"error": {"message": "unknown path"}}
    text = body["messages"][-1]["content"]
    items = [line[2:] for line in text.splitlines() if line.startswith("- ")]
    return chat(items[0] if items else "Yes")


def long_winded(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Explain for more than the little room before naming an action."""
    if not path.endswith("/chat/completions"):
        return 404, {"error": {"message": "unknown path"}}
    room = body.get("max_tokens") or body["max_completion_tokens"]
    if room <= SHORT:
        return chat("Let me explain at length.", finish_reason="length")
    return chat("Let me explain at length. I choose: go right")


@pytest.fixture
def talker(monkeypatch, tmp_path):
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))
    with answering(Talker()) as server:
        server.answer = brief
        yield server


def rooms(server: Talker) -> list[int]:
    bodies = [body for path, body in server.asked if path.endswith("/chat/completions")]
    return [body.get("max_tokens") or body["max_completion_tokens"] for body in bodies]


def loaded(server: Talker, **options: Any) -> Any:
    model = lm.load(f"openai:m?base_url={server.url}&chat=true", **options)
    server.asked.clear()
    return model


def judged(model: Any) -> list[float | None]:
    judge = Judge(model, JudgeConfig(way="text"))
    judge.begin(World(), 0)
    return judge.judged(["Was it good?"])


RUNS = {
    "zero-shot": (LAKE, "--steps", "6", "--prior.way", "text"),
    "dqn-prior": (LAKE, "--steps", "4", "--k", "2", "--prior.way", "structured"),
    "saycan": ("hunch/Kitchen-v0", "--steps", "6", "--prior.way", "text"),
    "kwon": ("hunch/Ultimatum-v0", "--steps", "20", "--judge.way", "text"),
    "ellm": ("hunch/Craft-v0", "--steps", "10", "--suggestions.how", "list"),
    "icpi": ("hunch/Chain-v0", "--prompts", "per-episode", "--steps", "10"),
}


@pytest.mark.parametrize("method", RUNS)
def test_no_role_gives_a_model_that_does_not_think_room_to_think(method, talker, tmp_path):
    env, *options = RUNS[method]
    spec = f"openai:m?base_url={talker.url}&chat=true"
    command = ["run", method, "--env", env, "--lm", spec, *options, "--out", str(tmp_path / "run")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HunchWarning)  # it says the same to everything
        main(command)
    assert rooms(talker)
    assert max(rooms(talker)) <= SHORT


def test_an_answer_that_was_cut_is_asked_again_with_all_the_room_and_resume_asks_nothing(talker):
    talker.answer = long_winded
    model = loaded(talker)
    prior = build_prior(PriorConfig(way="text"), model)
    (proposal,) = prior.propose([STATE], 2, np.random.default_rng(0))
    assert proposal.indices.tolist() == [1]
    assert sorted(rooms(talker)) == [SHORT, SHORT, THOUGHTS, THOUGHTS]

    again = loaded(talker)  # what a run does when it goes on in another process
    (repeated,) = build_prior(PriorConfig(way="text"), again).propose([STATE], 2, np.random.default_rng(0))
    assert repeated.indices.tolist() == [1]
    assert rooms(talker) == []


def test_an_answer_that_was_cut_while_thinking_is_asked_again_with_all_the_room(talker):
    """A model that was not seen to think at load may think all the same."""

    def thoughtful(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        said, reply = long_winded(path, body)
        if said == 200 and reply["choices"][0]["finish_reason"] == "length":
            reply["choices"][0]["message"] = {"content": None, "reasoning_content": "Let me see."}
        return said, reply

    model = loaded(talker)
    talker.answer = thoughtful
    with warnings.catch_warnings():
        warnings.simplefilter("error", HunchWarning)
        (proposal,) = build_prior(PriorConfig(way="text"), model).propose(
            [STATE], 2, np.random.default_rng(0)
        )
    assert proposal.indices.tolist() == [1]
    assert proposal.fallbacks == 0
    assert sorted(rooms(talker)) == [SHORT, SHORT, THOUGHTS, THOUGHTS]


def test_samples_that_are_stored_and_new_ones_keep_their_numbers(talker):
    def numbered(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        numbered.n += 1
        status, said = long_winded(path, body)
        if status == 200:  # a probe at load may be refused
            said["choices"][0]["message"]["content"] += f" {numbered.n}"
        return status, said

    numbered.n = 0
    talker.answer = numbered
    prior = build_prior(PriorConfig(way="text"), loaded(talker))
    two = prior.answers([STATE], 2)[0]
    three = build_prior(PriorConfig(way="text"), loaded(talker)).answers([STATE], 3)[0]
    assert three[:2] == two
    assert sorted(rooms(talker)) == [SHORT, THOUGHTS]  # the third only


def test_a_recording_with_cut_answers_is_replayed(talker, tmp_path):
    talker.answer = long_winded
    asked = build_prior(PriorConfig(way="text"), loaded(talker)).answers([STATE], 2)
    talker.answer = brief
    short = judged(loaded(talker))
    main(["cache", "export", str(tmp_path / "said.jsonl.gz")])
    replayed = lm.load(f"replay:{tmp_path / 'said.jsonl.gz'}")
    assert build_prior(PriorConfig(way="text"), replayed).answers([STATE], 2) == asked
    assert judged(replayed) == short == [1.0]


def test_max_tokens_of_the_settings_is_the_only_room(talker):
    talker.answer = long_winded
    prior = build_prior(PriorConfig(way="text", max_tokens=40, patience=None), loaded(talker))
    with pytest.warns(HunchWarning, match="cut an answer at max_tokens=40"):
        prior.answers([STATE], 1)
    assert rooms(talker) == [40]
