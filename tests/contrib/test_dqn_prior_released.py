"""DQN-Prior by the protocols of the authors' two scripts: what is stored, and when the agent learns."""

import pytest
from tests.begun import begun

import hunch
from hunch import lm
from hunch.core import State, Transition
from hunch.roles import TextTable, UniformPrior
from hunch_contrib.prior.dqn_prior_released import SCRIPTS, DQNPriorReleased

ROUNDS = {"hidden": 16, "batch_size": 16}


@pytest.fixture(scope="module")
def table():
    return TextTable(lm.load("minilm"))


def released(prior, table, **options):
    return DQNPriorReleased(prior, table, joint=False, **options)


def test_a_script_sets_what_the_user_does_not(table):
    alfworld, kitchens = (released(UniformPrior(), table, script=s).config for s in SCRIPTS)
    assert (alfworld.mixed, alfworld.round, alfworld.round_updates) == (False, 10, 0)
    assert (kitchens.mixed, kitchens.round, kitchens.round_updates) == (True, 5, 40)
    assert (kitchens.alpha, kitchens.gamma, kitchens.hidden) == (0.1, 0.99, 64)
    assert released(UniformPrior(), table, script="kitchens", round=3, mixed=False).config.round == 3
    assert not released(UniformPrior(), table, script="kitchens", mixed=False).config.mixed


def test_the_other_protocol_of_the_authors_keeps_the_contract(table):
    """Resume, evaluation without a trace, and the like, with episodes that are held until they end."""
    agent = begun(released(UniformPrior(), table, script="kitchens", k=2))
    hunch.methods.check(agent, hunch.make("hunch/FrozenLake-v0"), steps=40)


def test_failures_are_stored_while_they_do_not_outweigh_successes(table):
    agent = begun(released(UniformPrior(), table, surplus=1, copies=2, **ROUNDS))
    s = State("here", "go", ("left", "right"))

    def play(success):
        agent.act([s])
        agent.observe([Transition(s, "left", 0.0, s, False, False)])
        agent.act([s])
        agent.observe([Transition(s, "right", float(success), s, True, False, success)])
        return len(agent.learner.replay)

    sizes = [play(success) for success in (False, False, False, False, True, False, False)]
    assert sizes == [4, 8, 8, 8, 10, 14, 14], "twice each failure; the success lets one more in"
    assert play(True) == 16
    agent.observe([Transition(s, "left", 0.0, s, False, False)])
    assert len(agent.learner.replay) == 16, "an episode in flight is not stored yet"
    counters = agent.state_dict()["counters"]
    assert counters == [3, 2, 0, 8]
    agent.load_state_dict({**agent.state_dict(), "counters": counters[:3]})  # of before: all failures
    assert agent.episodes == 5


def test_the_kitchens_store_every_episode(table):
    assert released(UniformPrior(), table).config.surplus == 100
    agent = begun(released(UniformPrior(), table, script="kitchens", **ROUNDS))
    s = State("here", "go", ("left", "right"))
    for _ in range(110):
        agent.observe([Transition(s, "left", 0.0, s, True, False)])
    assert len(agent.learner.replay) == 110


def test_updates_in_rounds(table):
    """Four passes over what is stored, or a number, when an episode of so many ends."""
    s = State("here", "go", ("left", "right"))
    for options, after in (({"round_updates": 7}, [0, 7, 7, 14]), ({}, [0, 1, 1, 3])):
        agent = begun(released(UniformPrior(), table, **{**ROUNDS, "round": 2, "batch_size": 8, **options}))
        made = []
        for _ in range(4):
            agent.observe([Transition(s, "left", 0.0, s, True, False)])
            agent.learn()
            made.append(agent.learner.updates)
        assert made == after
