"""Environments of BALROG's and SmartPlay's form: texts, seeds, copies, ends, and what is of no such form."""

import random

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch.envs import check
from hunch_studies.worlds.benchmarks import balrog, crafter_seed, smartplay


class Balrog:
    """The older form: text in the observation, texts as actions, four values, and no seed."""

    language_action_space = ("Go", "Stay")
    _seed, _episode = 0, 0

    @property
    def unwrapped(self):
        return self

    def reset(self):
        self._episode += 1
        self.chance = np.random.default_rng([self._seed, self._episode])
        self.n = int(self.chance.integers(3))
        return self.observed()

    def observed(self):
        return {"text": {"long_term_context": f"{self.n} steps.", "short_term_context": "Empty hands."}}

    def step(self, action):
        assert action in ("Go", "Stay")
        self.n += action == "Go"
        return self.observed(), 1.0, self.n == 5, {"TimeLimit.truncated": False}

    def get_stats(self):
        return {"progression": self.n / 5}


class Newer(Balrog):
    """The later form: Gymnasium's values, seeds, missions, and any text as an action."""

    language_action_space = object()

    def reset(self, *, seed=None):
        self._seed, self._episode = seed, 0
        return super().reset() | {"mission": "walk"}, {}

    def step(self, action):
        observation, reward, done, info = super().step(action.capitalize())
        return observation | {"mission": "walk"}, reward, done, False, info

    def seed(self, seed):
        raise AssertionError("reset takes it")


class Wrapped:
    """Keeps the names of what it wraps to itself."""

    def __init__(self, env):
        self.env, self.reset, self.step = env, env.reset, env.step


class SmartPlay:
    """Text in the info, numbers as actions, chance of the global generators, and an end by a limit."""

    action_list, desc = ("Pull the left one.", "Pull the right one."), "There are two machines."

    def __init__(self):
        self.chances = [0.2, 0.8]

    def reset(self):
        self.t = 0
        random.shuffle(self.chances)
        return 0, {"obs": "A new round begins.", "completed": 0}

    def step(self, action):
        self.t += 1
        won = np.random.uniform() < self.chances[action]
        info = {
            "obs": f"{action}: {won}.",
            "completed": int(won and action),
            "TimeLimit.truncated": self.t == 9,
        }
        return 0, float(won), self.t == 9, info


@pytest.mark.parametrize(
    "make",
    [
        lambda: balrog(Balrog(), reseed=crafter_seed, max_steps=20),
        lambda: balrog(Wrapped(Balrog()), reseed=lambda env, seed: crafter_seed(env.env, seed), max_steps=20),
        lambda: smartplay(SmartPlay()),
    ],
)
def test_they_keep_the_contract_and_can_be_learnt_in(make):
    check(make())
    assert hunch.train("q-learning", make(), steps=30).steps == 30


def test_texts_ends_and_success_are_theirs():
    env = balrog(Balrog(), task="walk", reseed=crafter_seed)
    observation, info = env.reset(seed=1)
    assert observation.endswith(" steps.\n\nEmpty hands.")
    assert (info["actions"], info["task"], info["success"]) == (("Go", "Stay"), "walk", False)
    while not info["success"]:
        observation, reward, terminated, truncated, info = env.step("Go")
    assert (reward, terminated, truncated, info["progression"]) == (1.0, True, False, 1.0)
    played = smartplay(SmartPlay())
    assert played.reset(seed=0)[1]["task"] == SmartPlay.desc
    ends = [played.step(0)[2:4] for _ in range(9)]
    assert (ends[0], ends[-1]) == ((False, False), (False, True))


def test_any_text_may_be_an_action():
    env = balrog(Newer())
    observation, info = env.reset(seed=4)
    assert observation.startswith("Your mission: walk\n\n")
    assert info["free_text"]
    assert "actions" not in info
    assert env.step("go")[0] != observation == env.reset(seed=4)[0]


def test_the_global_generators_go_on_as_if_nothing_had_been_played():
    random.seed(0)
    np.random.seed(0)
    before = random.getstate(), np.random.get_state()[1].tolist()
    env = smartplay(SmartPlay())
    env.reset(seed=0)
    env.step(0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_what_is_of_another_form_is_named():
    class Bare:
        action_list, desc = ("a", "b"), ""

        def reset(self):
            return {"text": "bare"}

    for make, words in [
        (lambda: balrog(Bare()), "Bare has no language_action_space"),
        (lambda: smartplay(Balrog()), "Balrog has no action_list"),
        (lambda: smartplay(Bare()).reset(), "info\\['obs'\\]"),
        (lambda: balrog(type("Odd", (Bare,), {"language_action_space": ("a",)})()).reset(), "long and short"),
    ]:
        with pytest.raises(UsageError, match=words):
            make()
