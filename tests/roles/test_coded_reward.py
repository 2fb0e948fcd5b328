"""A program as a source of rewards: it pays as the environment does, and its failures are counted."""

import pytest
from tests.begun import begun

import hunch
from hunch import methods
from hunch.core import State, Transition, UsageError
from hunch.roles.reward.program import CodedReward
from hunch.roles.reward.rewarded import Rewarded
from hunch_studies.rules.dynamics import SOKOBAN_REWARD

NEAR = "def reward(state, action, next_state):\n    return -1.0 if next_state[0] > 1 else 1 / next_state[1]\n"


def step(raw, after):
    return Transition(
        State("", "", ("a",), raw=raw), "a", 0.0, State("", "", ("a",), raw=after), False, False
    )


def test_it_pays_as_the_environment_does():
    """Two routes to one reward: the environment's, and the program's in its place."""
    agent = Rewarded(methods.QLearning(), begun(CodedReward(SOKOBAN_REWARD)), extrinsic=0.0)
    plain = methods.QLearning()
    env = "hunch/Sokoban-v0"
    one, other = (hunch.train(a, hunch.make(env), 300, seed=0) for a in (agent, plain))
    assert [e.actions for e in one.episodes] == [e.actions for e in other.episodes]


def test_failures_are_worth_nothing_and_counted():
    source = begun(CodedReward(NEAR))
    assert source.rewards([step([0, 0], [2, 0]), step([0, 0], [0, 4]), step([0, 0], [0, 0])]) == [
        -1.0,
        0.25,
        0.0,
    ]
    assert source.learn() == {"reward_failed": pytest.approx(1 / 3)}
    assert source.learn() == {}


def test_the_contract_is_kept():
    methods.check(
        Rewarded(methods.QLearning(), begun(CodedReward(SOKOBAN_REWARD))), hunch.make("hunch/Sokoban-v0")
    )


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("def gain(s):\n    return 0", "no reward"),
        ("def reward(state, action, next_state):\n  (", "no reward"),
    ],
)
def test_what_is_no_reward_is_refused(program, said):
    with pytest.raises(UsageError, match=said):
        begun(CodedReward(program))


def test_states_without_numbers_are_refused_in_a_sentence():
    with pytest.raises(UsageError, match="states of numbers"):
        begun(CodedReward(NEAR)).rewards([step(None, None)])
