"""A transcript of BabyAI."""

from __future__ import annotations

import numpy as np
import pytest
from tests.methods import test_turns
from tests.methods.test_turns import agent

import hunch
from hunch.rl.rollout import Rollout
from hunch.roles.prior.language import prompt

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

model = test_turns.model


BABY = "hunch/BabyAI-GoToObj-v0"


def test_a_choice_by_the_transcript_is_how_likely_the_text_is_to_be_written(model):
    """Two routes: the tree of listed actions, and each action judged as a text with its end."""
    made = agent("grpo", model, group=2, listed=False)
    made.begin(hunch.core.World(streams=2, steps=10), 0)
    [state] = Rollout([hunch.make(BABY, history=1)], 3).states
    [shares] = made.policy.probabilities([state])
    prompts = [prompt(state, False)] * len(state.options)
    with torch.no_grad():
        judged = model.evaluate(prompts, model.as_written(prompts, state.options))
    np.testing.assert_allclose(shares, judged.logprobs.sum(1).softmax(0).numpy(), atol=1e-5)


def test_a_run_resumes_where_it_was_stopped(tmp_path, model):
    """A folder of transformers with adapters: stopped and resumed equals uninterrupted."""
    model.restart()
    spec = f'hf:{model.save(tmp_path / "model")}?train=lora&end="\\n"'
    options = {"max_steps": 3, "written": True, "history": 1}
    how = {"streams": hunch.Streams(envs=4, options=options), "lm": spec, "group": 2}
    how |= {"episodes": 4, "max_tokens": 5, "seed": 3}
    whole = hunch.train("gigpo", BABY, steps=24, out=tmp_path / "whole", **how)
    again = hunch.train("gigpo", BABY, steps=12, out=tmp_path / "again", **how)
    again = hunch.train("gigpo", BABY, steps=24, out=tmp_path / "again", **how)
    assert [e.actions for e in whole.episodes] == [e.actions for e in again.episodes]
    assert hunch.load(tmp_path / "whole").agent.evidence == "L1"
