"""Policies that are trained: what learns, what they share, and what they refuse."""

import copy
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import hunch
from hunch import lm, methods
from hunch.cli.help import meanings
from hunch.core import HunchError, HunchWarning, State, Transition, UsageError, World
from hunch.envs.base import Outcome, TextEnv

torch = pytest.importorskip("torch")

from hunch.methods.policy.gflan_prior import GFlanPrior  # noqa: E402
from hunch.methods.policy.glam import GLAM, GLAMConfig  # noqa: E402
from hunch.methods.policy.ppo import PPO, PPOConfig  # noqa: E402
from hunch.methods.policy.twosome import TWOSOME  # noqa: E402
from hunch.roles import TextTable, UniformPrior  # noqa: E402
from hunch.roles.policy.perceptron import PerceptronPolicy  # noqa: E402
from hunch.roles.prior.base import Proposal  # noqa: E402

ROOM = State("You see a red ball 2 steps left", "go to a red ball", ("turn left", "turn right", "drop"))
END = replace(ROOM, observation="You see a wall 1 step forward")
FAST = {"horizon": 12, "width": 8, "batch_size": 12, "learning_rate": 3e-3}


def begun(agent):
    agent.begin(World(), 0)
    return agent


def lesson(agent, rounds=6):
    """What turning right pays, in one state, until it is learnt."""
    agent.begin(World(streams=1, steps=1000), 0)
    for _ in range(rounds * 12):
        action = agent.act([ROOM])[0]
        agent.observe([Transition(ROOM, action, float(action == "turn right"), END, True, False)])
        agent.learn()
    return agent.explain(ROOM).chosen


@pytest.mark.parametrize("make", [GLAM, lambda **o: GFlanPrior(UniformPrior(), kl=0.01, **o)])
def test_a_model_learns_what_pays(make):
    """In two updates; once there is nothing to learn, further ones only move the pretrained weights."""
    agent = make(**{**FAST, "learning_rate": 1e-3})
    assert lesson(agent, rounds=2)[1] > 0.5
    agent.begin(World(), 0)
    assert agent.explain(ROOM).chosen[1] < 0.1, "the walks turn towards the ball"


def test_adapters_learn_what_pays_and_a_warmup_leaves_them():
    settings = {**FAST, "horizon": 12, "target_kl": 0.0, "learning_rate": 1e-2, "epochs": 4}
    assert lesson(TWOSOME(**settings))[1] > 0.5
    waits = TWOSOME(**settings, warmup=1000)
    before = waits.explain(ROOM).chosen
    np.testing.assert_array_equal(lesson(waits, 1), before)


class Right:
    """A prior that knows."""

    evidence = "L0"

    def propose(self, states, k, rng):
        return [Proposal(np.array([1]), np.array([1.0])) for _ in states]


def test_a_prior_pulls_where_nothing_is_paid_and_proposals_bind():
    agent = GFlanPrior(Right(), kl=1.0, **FAST)
    agent.begin(World(streams=1, steps=1000), 0)
    before = agent.explain(ROOM).chosen[1]
    for _ in range(24):
        agent.observe([Transition(ROOM, agent.act([ROOM])[0], 0.0, END, True, False)])
        told = agent.learn()
    assert told["prior_kl"] > 0
    assert agent.explain(ROOM).chosen[1] > before + 0.1
    bound = begun(GFlanPrior(Right(), space="proposals", **FAST))
    assert bound.explain(ROOM).chosen.tolist() == [0, 1, 0]
    assert bound.act([ROOM] * 5) == bound.player(0).act([ROOM] * 5) == ["turn right"] * 5


def test_ppo_learns_a_game_of_one_move():
    agent = PPO(hunch.roles.TextTable(lm.load("bag-of-words")), horizon=16, learning_rate=1e-2)
    assert lesson(agent, 12)[1] > 0.9


class Mortal(PerceptronPolicy):
    """Dies after some passes, if it is told how many."""

    passes = None

    def logprobs_and_values(self, states):
        if self.passes is not None:
            self.passes -= 1
            if self.passes < 0:
                raise KeyboardInterrupt
        return super().logprobs_and_values(states)


class MortalPPO(PPO):
    def make_policy(self, seed):
        return Mortal(self.table, self.config.hidden, seed)


def test_an_update_that_was_killed_halfway_is_made_again():
    """From the last checkpoint, which has the steps of the update, as if nothing had happened."""
    killed, unharmed = (
        MortalPPO(hunch.roles.TextTable(lm.load("phrases")), horizon=32, batch_size=8) for _ in range(2)
    )
    for agent in (killed, unharmed):
        agent.begin(World(streams=1, steps=1000), 0)
        for _ in range(32):
            [action] = agent.act([ROOM])
            agent.observe([Transition(ROOM, action, float(action == "drop"), END, True, False)])
    saved, before = copy.deepcopy(killed.state_dict()), killed.explain(ROOM).chosen
    killed.policy.passes = 5
    with pytest.raises(KeyboardInterrupt):
        killed.learn()
    killed.policy.passes = None
    assert not np.array_equal(killed.explain(ROOM).chosen, before)
    killed.load_state_dict(saved)
    assert killed.learn() == unharmed.learn()
    np.testing.assert_array_equal(killed.explain(ROOM).chosen, unharmed.explain(ROOM).chosen)


class Cramped(PerceptronPolicy):
    """Has memory for four states at once."""

    room = 4
    error = None

    def logprobs(self, states):
        if len(states) > self.room:
            raise self.error
        return super().logprobs(states)


class CrampedPPO(PPO):
    def make_policy(self, seed):
        return Cramped(self.table, self.config.hidden, seed)


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: ... (Cannot allocate memory)"),
    ],
    ids=["of an accelerator", "of the machine"],
)
def test_too_little_memory_names_settings_that_fit(error, monkeypatch):
    """While acting and in an update; a smaller micro is one of them."""
    monkeypatch.setattr(Cramped, "error", error)
    large, small = (begun(CrampedPPO(horizon=8, micro=micro)) for micro in (128, 4))
    assert len(small.act([ROOM] * 9)) == 9
    assert small.explain(ROOM).chosen.sum() == pytest.approx(1)
    lesson(small, 1)
    with pytest.raises(HunchError, match="smaller micro or batch_size, or train=lora"):
        large.act([ROOM] * 9)
    small, large = (CrampedPPO(horizon=8, micro=micro) for micro in (4, 128))
    with pytest.warns(HunchWarning, match="128 steps at once did not fit into memory. From here on 4 are"):
        assert np.array_equal(lesson(small, 1), lesson(large, 1)), "an update halves micro until it fits"
    assert large.learner.micro == 4
    acts = large.act([ROOM])
    large.observe([Transition(ROOM, acts[0], 1.0, END, True, False)] * 8)
    large.policy.room = 0
    with pytest.raises(HunchError, match="smaller micro or batch_size, or train=lora"):
        large.learn()


class Turns(TextEnv):
    """Two players move in turn along a corridor: a player's step lasts until it is its turn again."""

    task = "go right"
    metadata: ClassVar = {**TextEnv.metadata, "players": 2}

    def __init__(self):
        super().__init__(max_steps=7)

    def _begin(self, options):
        self.at = self.turn = 0
        return Outcome("You are in cell 0.", ("left", "right"))

    def _move(self, action):
        self.turn += 1
        self.at += 1 if action == "right" else -1
        return Outcome(f"You are in cell {self.at}.", ("left", "right"), float(self.at))

    def _extras(self):
        return {"player": self.turn % 2}


def test_a_run_of_two_players_is_resumed_with_the_decisions_that_await_their_results():
    methods.check(PPO(TextTable(lm.load("bag-of-words")), horizon=50), Turns(), steps=10, streams=1)


def test_settings_and_models_are_checked():
    with pytest.raises(UsageError, match="add train=lora"):
        TWOSOME(lm="pocket?corpus=walks")
    with pytest.raises(UsageError, match="leave value out"):
        TWOSOME.check(TWOSOME.config_class(value=1.0), {})
    with pytest.raises(UsageError, match="hf:<name or folder>"):
        GLAM(lm="minilm")
    with pytest.raises(UsageError, match="train=all"):
        GLAM(lm="pocket?corpus=walks&train=lora", start="random")
    with pytest.raises(UsageError, match="no pocket model of the corpus 'talks'"):
        GLAM(lm="pocket?corpus=talks")
    with pytest.raises(UsageError, match="start must be one of"):
        GLAM(start="elsewhere")


def test_a_prompt_that_is_too_long_is_one_sentence():
    agent = begun(GLAM(**FAST))
    with pytest.raises(HunchError, match=r"reads at most .* With context=N"):
        agent.act([replace(ROOM, observation="mug " * 600)])


def test_weights_of_another_way_to_train_are_refused():
    adapted = begun(GLAM(lm="pocket?corpus=walks&train=lora", **FAST))
    with pytest.raises(HunchError, match="do not match"):
        begun(GLAM(**FAST)).load_state_dict(adapted.state_dict())
    kept = adapted.state_dict()
    kept["learner"]["policy"]["base"] = "of another model"
    with pytest.raises(HunchError, match="for other weights"):
        adapted.load_state_dict(kept)


@pytest.mark.slow
def test_ppo_crosses_the_lake_as_text():
    """Positions and what is around, in sentences; random play succeeds in 0.01 of the episodes."""
    envs = [hunch.make("hunch/FrozenLake-v0") for _ in range(4)]
    found = hunch.train(PPO(learning_rate=1e-3), envs, steps=7_000, seed=0)
    assert found.success.value > 0.8


def test_a_method_refuses_settings_that_it_does_not_read():
    """A config holds what the method reads, and no more, so that config.json states what the run did."""
    with pytest.raises(TypeError, match="whiten"):
        PPOConfig(whiten=False)
    with pytest.raises(UsageError, match="PPO has no option 'whiten'"):
        PPO(whiten=False)
    with pytest.raises(UsageError, match="PPO has no option"):
        PPO(config=GLAMConfig())


def test_the_batch_size_of_glam_acts_below_the_steps_of_an_update():
    """With one environment these are 40, fewer than the paper's 64: one gradient step an epoch."""
    steps = {}
    for batch_size in (64, 40, 10):
        agent = GLAM(horizon=40, epochs=2, width=8, batch_size=batch_size)
        agent.begin(World(streams=1, steps=1000), 0)
        made, step = [], agent.learner.optimiser.step
        agent.learner.optimiser.step = lambda made=made, step=step: made.append(step())
        for _ in range(40):
            agent.observe([Transition(ROOM, agent.act([ROOM])[0], 1.0, END, True, False)])
        assert agent.learn()
        steps[batch_size] = len(made)
    assert steps == {64: 2, 40: 2, 10: 8}
    assert "each epoch is one gradient step" in meanings(GLAMConfig)["batch_size"]
