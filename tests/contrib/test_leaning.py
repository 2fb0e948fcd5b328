"""Q-learning that leans on a prior: instruct-q and likelihood-value."""

import numpy as np
import pytest

import hunch
from hunch import lm
from hunch.core import State, Transition, UsageError, World
from hunch.roles.prior.base import DistributionPrior, UniformPrior
from hunch.roles.prior.kinds import PriorConfig, build_prior
from hunch_contrib.prior.instruct_q import InstructQ
from hunch_contrib.prior.likelihood_value import LikelihoodValue

LAKE = "hunch/FrozenLake-v0"
INSTRUCTION = "select the same number as your partner"
READING = PriorConfig(way="likelihood", normalise="sum")


def prior(spec, config=READING):
    return build_prior(config, lm.load(spec))


def test_q_has_no_bonus_in_it():
    """One state, two actions, the reward of the dull one 1: the prior decides, and Q is the truth."""
    state = State("here", "", ("dull", "told"))
    sure = prior("scripted:first")  # the first of the list
    agent = InstructQ(sure, weight=(10.0,), learning_rate=1.0)
    agent.begin(World(streams=1), 0)
    flipped = State("here", "", ("told", "dull"))
    agent.observe([Transition(flipped, "dull", 1.0, state, True, False)])
    agent.learn()
    assert agent.q(flipped).tolist() == [0.0, 1.0]
    assert agent.player(0).act([flipped]) == ["told"]


def test_the_instruction_stands_in_the_place_of_the_task():
    asked = []

    class Listens(UniformPrior):
        def _compute(self, states):
            asked.extend(s.task for s in states)
            return super()._compute(states)

    agent = InstructQ(Listens(), instruction=INSTRUCTION)
    agent.begin(World(streams=1), 0)
    agent.act([State("Your partner says 3.", "collect balls", ("select 3", "quit"))])
    assert asked == [INSTRUCTION]


def test_with_the_blank_prompt_neither_the_instruction_nor_the_task_is_read():
    """Observations repeat the task, and not the instruction that the prior reads in its place."""
    asked = []

    class Listens(DistributionPrior):
        def _compute(self, states):
            asked.extend(states)
            return [np.full(2, 0.5) for _ in states]

    blank = Listens("L0")
    blank.blank = True
    agent = InstructQ(blank, instruction=INSTRUCTION)
    agent.begin(World(streams=1), 0)
    agent.act([State("Collect balls!\nYour partner says 3.", "collect balls", ("select 3", "quit"))])
    assert [(state.observation, state.task) for state in asked] == [("Your partner says 3.", "")]


def test_either_factor_alone():
    """The value alone does not ask; the likelihood alone does not heed what came."""
    value = LikelihoodValue(prior("scripted:frozenlake"), factor="value")
    assert value.evidence is None
    assert value.leaning(State("here", "", ("a", "b"))) == ()
    q = np.array([0.9, 0.1])
    both = LikelihoodValue(prior("scripted:first"))
    likely = LikelihoodValue(prior("scripted:first"), factor="likelihood")
    leaning = (np.log(0.3), np.log(0.7))
    assert likely.scores(q, leaning).tolist() == list(leaning)
    assert np.allclose(np.exp(both.scores(q, leaning)), [0.27, 0.07])
    assert np.allclose(np.exp(value.scores(q, ())), q)
    with pytest.raises(UsageError, match="least"):  # every value would be above 1, and count as 1
        LikelihoodValue(prior("scripted:first"), least=2.0)


def test_the_value_is_the_probability_of_success():
    """On the lake, by a rule that knows the way: it comes to 1 for the last step, and is never above."""
    agent = LikelihoodValue(prior("scripted:frozenlake"), epsilon=(0.1, 0.1, 1))
    hunch.train(agent, hunch.make(LAKE), 400, seed=0)
    found = agent.table.entries.values()
    assert 0.9 < max(found) <= 1
    assert min(found) >= 0


@pytest.mark.parametrize("options", [{"weight": (-1.0,)}, {"floor": 2.0}, {"weights": 1}])
def test_settings_out_of_range(options):
    with pytest.raises(UsageError):
        InstructQ(UniformPrior(), **options)
    with pytest.raises(UsageError, match="action prior"):
        InstructQ(lm.load("scripted:first"))
