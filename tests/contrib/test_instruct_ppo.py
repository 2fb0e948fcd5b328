"""InstructRL with PPO: whom the instruction pulls."""

from dataclasses import replace

import numpy as np
import pytest

from hunch.core import State, Transition, UsageError, World
from hunch.roles.prior.base import DistributionPrior

pytest.importorskip("torch")

from hunch_contrib.policy.instruct_ppo import InstructPPO

ROOM = State("You see a red ball 2 steps left", "go to a red ball", ("turn left", "turn right", "drop"))
END = replace(ROOM, observation="You see a wall 1 step forward")


def test_an_instruction_pulls_the_players_that_it_is_for():
    """The listener's policy comes near the prior where nothing is paid; the speaker's is left alone."""

    def pulled(players):
        settings = {"horizon": 16, "learning_rate": 1e-2, "kl": 1.0, "instruction": "do it"}
        agent = InstructPPO(Knows(), players=players, **settings)
        agent.begin(World(streams=2, steps=200), 0)
        states = [ROOM, replace(ROOM, stream=1, seat=1)]
        for _ in range(64):
            acts = zip(states, agent.act(states), strict=True)
            agent.observe([Transition(s, a, 0.0, END, True, False) for s, a in acts])
            told = agent.learn() or {}
        return agent.explain(ROOM).chosen[1], told

    assert pulled((1,))[0] > 0.5, "they share the policy"
    alone, told = pulled((7,))
    assert alone == pytest.approx(1 / 3, abs=0.2)
    assert told["prior_kl"] == 0
    with pytest.raises(UsageError, match="players"):
        InstructPPO(Knows(), players=(-1,))


def test_without_a_weight_it_is_ppo_to_the_end():
    """The weight of the prior does not rise from 0 to its final value, so the prior is never asked."""
    settings = {"horizon": 16, "instruction": "do it"}
    agents = [InstructPPO(Knows(), kl=0, **settings), InstructPPO(Knows(), kl=0, kl_end=None, **settings)]
    for agent in agents:
        agent.begin(World(steps=64), 0)
        for _ in range(64):
            [action] = agent.act([ROOM])
            agent.observe([Transition(ROOM, action, float(action == "drop"), END, True, False)])
            metrics = agent.learn()
        assert "prior_kl" not in metrics
        assert agent.evidence is None
    assert list(agents[0].explain(ROOM).chosen) == list(agents[1].explain(ROOM).chosen)


class Knows(DistributionPrior):
    """A prior that reads one instruction."""

    def __init__(self):
        super().__init__("L0")

    def _compute(self, states):
        assert all(state.task == "do it" for state in states)
        return [np.eye(len(state.options))[1] for state in states]
