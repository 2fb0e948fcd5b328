"""Cloning with a language model: better than random within seconds, and runs that go on."""

import pytest
from tests.begun import begun

import hunch
from hunch.core import State, Transition, UsageError
from hunch.methods.prior.bc_lm import BCLM

FAST = {"batch_size": 8, "learning_rate": 2e-3}


def test_the_recorded_action_is_learnt_and_alpha_flattens():
    s, end = State("a door and a wall", "get out", ("open door", "hit wall")), State("out", "get out", ())
    agent = begun(BCLM(**FAST))
    agent.observe([Transition(s, "open door", 0.0, end, True, False)])
    for _ in range(20):
        agent.learn()
    believed = agent.explain(s)
    assert believed.chosen[0] > 0.9
    flat = begun(BCLM(alpha=1000.0, **FAST))
    flat.load_state_dict(agent.state_dict())
    assert flat.policy(s)[0] == pytest.approx(0.5, abs=0.05)


def test_evidence_is_of_a_model_of_our_own():
    assert hunch.methods.find("bc-lm").build(BCLM().config, {}).evidence == "L1"


def test_settings_are_checked():
    with pytest.raises(UsageError, match="alpha must be above 0"):
        BCLM(alpha=0)
    with pytest.raises(UsageError, match="no option 'gamma'"):
        BCLM(gamma=0.9)
    with pytest.raises(UsageError, match="hf:<name or folder>"):
        BCLM(lm="minilm")
