"""Constitutional AI: a run that stops in its second stage, and what is learnt from drafts that stay."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from hunch.core import State, Transition, World
from hunch.methods.settings import configure
from hunch.rl.policy import Decision
from hunch.runs.callbacks import Watch
from hunch.runs.checkpoints import read_checkpoint
from hunch.runs.execute import RunConfig, execute

torch = pytest.importorskip("torch")
pytest.importorskip("hunch_studies")

from hunch import lm  # noqa: E402
from hunch_contrib.tune.constitutional import Constitutional  # noqa: E402

SCRATCH = "scratch?width=16&layers=1&heads=2&vocabulary=24"
REQUESTS = ("dish soup diet vegan pace quick :", "dish stew diet glutenfree pace slow :")
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


ASKED = [State(REQUESTS[0], stream=stream) for stream in range(32)]


def after_the_first_stage(tmp_path, words):
    """Return an agent that has learnt from drafts of four tokens, all of which were cut, and the drafts."""
    principles = tmp_path / "principles.txt"
    principles.write_text("The answer uses no food that the diet forbids.\n")
    config = {**SHORT, "lm": SCRATCH, "principles": str(principles), "drafts": 64, "demonstrations": 300}
    agent = Constitutional(
        configure(Constitutional, None, {**config, "compare": False}), lm.load("scripted:critic")
    )
    agent.begin(World(streams=32, steps=1_000), 0)
    agent.agent.lm.take([f"{REQUESTS[0]} {words}"])
    drafts = []
    while not agent.revised:
        texts = agent.act(ASKED)
        decisions = [agent.agent.decided[state.stream] for state in ASKED]
        cut = [(s, d) for s, d in zip(ASKED, decisions, strict=True) if not d.finished]
        assert [decision.text for decision in decisions] == texts
        agent.observe([Transition(state, draft.text, 0.0, state, True, False) for state, draft in cut])
        drafts += [draft for _, draft in cut]
        agent.learn()
    return agent, drafts[:64]


def test_a_draft_that_was_cut_and_stays_is_not_learnt_as_if_it_had_ended(tmp_path):
    agent, _ = after_the_first_stage(tmp_path, "red tea blue cup")
    rngs = [np.random.default_rng(seed) for seed in range(200)]
    written = agent.agent.lm.write([REQUESTS[0]] * len(rngs), rngs, max_tokens=6)
    assert np.mean([text.finished for text in written]) < 0.3


def test_drafts_are_learnt_as_they_were_drawn_and_revisions_as_given_texts(tmp_path):
    agent, drafts = after_the_first_stage(tmp_path, "boil chicken ; serve")
    learnt = [Decision(*decision) for _, *decision in agent.learnt]
    stays = [decision.text == draft.text for decision, draft in zip(learnt, drafts, strict=True)]
    assert 0 < sum(stays) < len(stays)
    for decision, draft, is_same in zip(learnt, drafts, stays, strict=True):
        assert decision == (draft if is_same else Decision(decision.text))
        assert is_same == ("chicken" not in draft.text.split())
