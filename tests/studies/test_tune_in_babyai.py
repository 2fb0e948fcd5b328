"""Listed actions of BabyAI by their likelihood."""

from __future__ import annotations

import pytest
from tests.methods import test_tune
from tests.methods.test_tune import agent

import hunch
from hunch import methods

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")


model = test_tune.model


def test_listed_actions_are_chosen_by_their_likelihood(model):
    """In an environment of listed actions, an update raises what pays, and all choices are admissible."""
    made = agent("grpo", model, group=4, kl=0.0, episodes=16, learning_rate=1e-3)
    env = "hunch/BabyAI-GoToObj-v0"
    result = hunch.train(made, [hunch.make(env, history=0, max_steps=4) for _ in range(4)], steps=160)
    assert result.complete
    made = agent("rloo", model, group=2, episodes=4)
    methods.check(made, hunch.make(env, history=0, max_steps=3), steps=24, streams=2)
