"""Constitutional AI: a run that stops in its second stage, and what is learnt from drafts that stay."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hunch.methods.settings import configure
from hunch.runs.callbacks import Watch
from hunch.runs.checkpoints import read_checkpoint
from hunch.runs.execute import RunConfig, execute

torch = pytest.importorskip("torch")
pytest.importorskip("hunch_studies")

from hunch_contrib.tune.constitutional import Constitutional  # noqa: E402

SCRATCH = "scratch?width=16&layers=1&heads=2&vocabulary=64"
REQUESTS = ("dish soup diet vegan pace quick :", "dish stew diet halal pace slow :")
SHORT = {
    "judge": "scripted:critic",
    "labels": "gold",
    "drafts": 16,
    "demonstrations": 4,
    "pairs": 8,
    "episodes": 8,
    "max_tokens": 4,
    "ptx": 0.5,
}


def rows(kind, completions):
    prompts = [request if kind == "text" else [{"role": "user", "content": request}] for request in REQUESTS]
    found = [{"prompt": prompt, "answer": "serve"} for prompt in prompts]
    if completions:  # the demonstrations of the environment are not what is learnt
        found = [{**row, "completion": "boil chicken ; serve"} for row in found]
    return "".join(json.dumps(row) + "\n" for row in found)


@pytest.mark.parametrize(("kind", "completions"), [("text", False), ("text", True), ("messages", False)])
def test_a_run_that_stops_in_the_second_stage_goes_on_as_if_it_had_not(kind, completions, tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text(rows(kind, completions))
    config = RunConfig(
        method="constitutional", env="hunch/Prompts-v0", env_options={"file": str(file)}, lm=SCRATCH, envs=8
    )
    config = replace(config, steps=80, options=configure(Constitutional, None, SHORT))
    execute(config, tmp_path / "whole")

    calls = []

    def after_seven_steps():
        calls.append(None)
        return len(calls) == 7

    assert execute(config, tmp_path / "parts", watch=Watch(stop=after_seven_steps)).steps == 56
    execute(config, tmp_path / "parts")

    whole, parts = (read_checkpoint(tmp_path / name)["agent"] for name in ("whole", "parts"))
    assert whole["revised"]
    assert_equal(whole, parts)


def assert_equal(one, other):
    """Compare nested states with tensors."""
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_equal(one[name], other[name])
    elif isinstance(one, list | tuple):
        for each, of_other in zip(one, other, strict=True):
            assert_equal(each, of_other)
    else:
        assert one == other
