"""Reward sources under learners of other libraries: the same rewards as inside our own loop."""

import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import hunch
from hunch import lm
from hunch.core import Agent, InadmissibleActionError, UsageError, World
from hunch.methods.reward.count_bonus import Counts
from hunch.rl.rollout import Rollout
from hunch.roles.reward.gym import RewardWrapper, Vectors
from hunch.roles.reward.judge import Judge
from hunch.roles.reward.rewarded import Rewarded, Shaping

WORDS = lm.load("bag-of-words")


class Notes(Agent):
    def begin(self, world, seed):
        self.rewards = []

    def act(self, states):
        raise NotImplementedError

    def observe(self, transitions):
        self.rewards += [t.reward for t in transitions]

    def player(self, seed):
        raise NotImplementedError


@pytest.mark.parametrize("shaping", [None, Shaping(beta=1.0), Shaping(standardise=True)])
def test_the_rewards_are_those_of_the_loop(shaping):
    """Two routes to one reward: Rewarded in a rollout, and the wrapper, on the same steps."""
    options = {"weight": 0.5, "extrinsic": 2.0, "shaping": shaping}
    notes = Notes()
    rewarded = Rewarded(notes, Counts("event"), **options)
    rollout = Rollout([hunch.make("hunch/Craft-v0", max_steps=15)], 0)
    rewarded.begin(World(streams=1), 0)
    wrapped = RewardWrapper(hunch.make("hunch/Craft-v0", max_steps=15), Counts("event"), **options)
    rng, own = np.random.default_rng(0), []
    over = True
    for _ in range(40):
        if over:
            wrapped.reset()
        action = rollout.states[0].options[int(rng.integers(6, 40))]
        rewarded.observe(rollout.step([action]))
        _, reward, terminated, truncated, info = wrapped.step(action)
        own.append(reward)
        over = terminated or truncated
        assert info["extrinsic"] in (0.0, 1.0)
    assert own == pytest.approx(notes.rewards)
    assert len(set(own)) > 2


def test_a_judge_pays_at_the_end():
    env = RewardWrapper(hunch.make("hunch/Ultimatum-v0"), Judge(lm.load("scripted:judge")), extrinsic=0.0)
    for seed in range(5):
        env.reset(seed=seed)
        _, reward, terminated, _, info = env.step(env.unwrapped.oracle()[0])
        assert (reward, terminated, info["extrinsic"], info["intrinsic"]) == (1.0, True, 1.0, 1.0)


def test_gymnasium_accepts_it_as_numbers():
    judge = Judge(lm.load("scripted:judge"))
    env = Vectors(RewardWrapper(hunch.make("hunch/Ultimatum-v0"), judge, weight=0.5), WORDS)
    assert env.observation_space.shape == (2 * WORDS.dim,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=0)
    assert observation.dtype == np.float32
    assert env.step(np.int64(1))[1] in (0.0, 1.5)


def test_what_has_no_place_is_refused():
    with pytest.raises(UsageError, match="recall"):
        RewardWrapper(hunch.make("hunch/Ultimatum-v0"), Counts("event"), shaping=Shaping(recall=True))
    env = Vectors(hunch.make("hunch/SaySelect-v0"), WORDS)
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(InadmissibleActionError):
        env.step(0)


def test_a_learner_of_stable_baselines3_gets_the_judges_rewards():
    """The program of the docs, shorter; needs stable-baselines3, which no extra of ours installs."""
    sb3 = pytest.importorskip("stable_baselines3")
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    judge = Judge(lm.load("scripted:judge"))
    env = Vectors(RewardWrapper(hunch.make("hunch/Ultimatum-v0"), judge, extrinsic=0.0), WORDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checker.check_env(env)
        asked = sum(judge.verdicts[name] for name in ("yes", "no"))
        model = sb3.DQN("MlpPolicy", env, learning_starts=20, seed=0).learn(60)
    kept = model.replay_buffer.rewards[:60, 0]
    assert set(kept) == {0.0, 1.0}
    assert sum(judge.verdicts[name] for name in ("yes", "no")) == asked + 60
