"""Rewards for novelty: RND finds what random play does not, and needs its start of Q for that."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.core import State, Transition, World
from hunch.envs.base import Outcome, TextEnv
from hunch.methods import checker
from hunch.methods.q_learning import QLearningConfig


class Corridor(TextEnv):
    """Twenty cells, of which the last pays; a random walk of thirty steps does not get there."""

    task = "reach the end"

    def __init__(self):
        super().__init__(max_steps=30)

    def _begin(self, options):
        self.at = 0
        return self._seen()

    def _move(self, action):
        self.at = max(0, self.at + (1 if action == "right" else -1))
        return self._seen()

    def _seen(self):
        over = self.at == 20
        return Outcome(
            f"You are in cell {self.at} of a corridor.", ("left", "right"), float(over), over, over
        )


def successes(agent, seed):
    result = hunch.train(agent, Corridor(), 1_500, seed=seed)
    return sum(episode.success for episode in result.episodes)


def table(**options):
    return QLearningConfig(epsilon=(0.05, 0.05, 1), **options)


@pytest.mark.parametrize("seed", range(3))
def test_rnd_finds_what_random_play_does_not(seed):
    assert successes(methods.RND(table=table(initial=3.0), rnd_warmup=100), seed) > 10
    assert successes(methods.QLearning(epsilon=(1.0, 1.0, 1)), seed) == 0


def test_it_does_not_if_q_starts_at_0():
    """Every action that was tried then looks better than one that was not."""
    assert successes(methods.RND(table=table(initial=0.0), rnd_warmup=100), 0) == 0


def test_ppo_learns_from_no_action_that_its_policy_did_not_draw():
    """Log-probabilities are computed before an update, so one drawn at random would look like its own."""
    agent = methods.RND(learner="ppo", rnd_warmup=10)
    drawn = []
    act = agent.agent.act

    def noted(states):
        chosen = act(states)
        drawn.extend(chosen)
        return chosen

    agent.agent.act = noted
    hunch.train(agent, Corridor(), 30, seed=0)
    kept = [step.transition.action for stream in agent.agent.kept.streams() for step in stream]
    assert kept == drawn
    assert len(kept) == 30


def step(text):
    state = State(text, "", ("a", "b"))
    return Transition(state, "a", 0.0, state, False, False)


def test_the_first_steps_are_random_and_pay_nothing():
    agent = methods.RND(rnd_warmup=50)
    agent.begin(World(), 0)
    drawn = []
    for i in range(50):
        drawn += agent.act([step("x").state])
        assert agent.source.rewards([step(f"cell {i}")]) == [0.0]
    assert 10 < drawn.count("a") < 40
    assert agent.source.rewards([step("cell 50")])[0] > 0


@pytest.mark.parametrize("scaled", [("input", "errors"), ("input",), ("errors",), ()])
def test_what_is_new_pays_more(scaled):
    for agent in (methods.CountBonus(), methods.RND(rnd_warmup=20, rnd_scaled=scaled)):
        source = agent.source
        source.begin(World(), 0)
        for _ in range(400):
            source.rewards([step("a red door")])
        old, new = (source.rewards([step(text)])[0] for text in ("a red door", "seven blue chairs"))
        assert old < new / 2


def test_the_bonus_does_not_depend_on_the_size_of_the_errors():
    """A wider network has other errors; the deviation of their sums takes that out."""
    means = []
    for hidden in (16, 256):
        source = methods.RND(rnd_warmup=20, rnd_hidden=hidden).source
        source.begin(World(), 0)
        means.append(np.mean([source.rewards([step(f"cell {i % 7}")])[0] for i in range(300)]))
    assert 1 / 3 < means[0] / means[1] < 3


def test_a_recorded_episode_is_paid_on_the_scale_of_single_steps():
    """Of recorded data a whole episode comes at once: each of its steps has its own sum of errors."""
    means = []
    for at_once in (1, 20):
        source = methods.RND(rnd_warmup=20, rnd_scaled=("errors",)).source
        source.begin(World(), 0)
        bonuses = []
        for episode in range(8):
            steps = [step(f"cell {i} {episode}") for i in range(20)]
            steps[-1] = replace(steps[-1], terminated=True)
            for first in range(0, 20, at_once):
                bonuses += source.rewards(steps[first : first + at_once])
        means.append(np.mean(bonuses[20:60]))
    assert 1 / 3 < means[0] / means[1] < 3


@pytest.mark.parametrize(
    "agent",
    [
        lambda: methods.CountBonus(),
        lambda: methods.CountBonus(of="event"),
        lambda: methods.RND(rnd_batch=7, rnd_warmup=8),
    ],
)
def test_novelty_keeps_the_contract(agent):
    methods.check(agent(), hunch.make("hunch/Craft-v0"), steps=36)


class Turns(TextEnv):
    """Two players take turns."""

    task = "count to five"
    metadata: ClassVar = {**TextEnv.metadata, "players": 2}

    def __init__(self):
        super().__init__(max_steps=6)

    def _begin(self, options):
        self.at = self.turn = 0
        return self._seen()

    def _move(self, action):
        self.turn += 1
        self.at += 1 + (action == "two")
        return self._seen()

    def _seen(self):
        over = self.at >= 5
        return Outcome(f"It is {self.at}.", ("one", "two"), float(over), over, over)

    def _extras(self):
        return {"player": self.turn % 2}


def test_the_recorded_episodes_of_a_check_have_one_player_each():
    recorded = checker._recorded(Turns(), 0)
    assert [len({t.stream for t in episode}) for episode in recorded] == [1] * 6


def test_two_players_have_a_sum_of_bonuses_each():
    """A check that numbers the streams of recorded data anew must not make one of them."""
    methods.check(methods.RND(encoder=lm.load("bag-of-words"), rnd_warmup=3), Turns(), steps=24)
