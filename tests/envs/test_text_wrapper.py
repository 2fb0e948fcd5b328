import copy

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from hypothesis import given, settings
from hypothesis import strategies as st

from hunch.core import InadmissibleActionError, UsageError
from hunch.envs import TextWrapper, check
from hunch.envs.wrappers import History

NAMES = ("push left", "wait", "push right")


def describe(x):
    return f"The car is at {x[0]:.4f} and moves at {x[1]:.4f}."


def car(**options):
    return TextWrapper(gymnasium.make("MountainCar-v0"), describe, NAMES, task="drive up", **options)


class Counter(gymnasium.Env):
    """Count up to five by 1 or 2; actions are 3 and 4, the info says what is possible."""

    observation_space, action_space = Discrete(7), Discrete(2, start=3)
    told = None

    def reset(self, *, seed=None, options=None):
        self.n = (options or {}).get("start", 0)
        return self.n, {"fits": (True, True)}

    def step(self, action):
        assert self.action_space.contains(action)
        self.n += action - 2
        info = {"fits": (True, self.n < 4), "vector": (self.n,)} | (self.told or {})
        return np.int64(self.n), np.float32(self.n), np.bool_(self.n == 5), self.n > 5, info


def fitting(observation, info):
    return {f"add {i + 1} to {observation}": i + 3 for i in range(2) if info["fits"][i]}


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31), choices=st.lists(st.integers(0, 2), max_size=60))
def test_it_is_the_wrapped_episode_in_words(seed, choices):
    env, plain = car(), gymnasium.make("MountainCar-v0")
    observation, info = env.reset(seed=seed)
    assert observation == describe(plain.reset(seed=seed)[0])
    told = {name: value for name, value in info.items() if name != "raw"}
    assert told == {"actions": NAMES, "success": False, "task": "drive up", "event": ""}
    for choice in choices:
        seen = env.step(NAMES[choice])
        raw, *expected, _ = plain.step(choice)
        assert seen[:4] == (describe(raw), *expected)
    assert env.reset()[0] == describe(plain.reset()[0])  # the next episode, too


@pytest.mark.parametrize("history", [0, 2])
def test_it_keeps_the_contract(history):
    check(History(car(), history))
    check(History(TextWrapper(Counter(), lambda n: f"{n}.", fitting, max_steps=4), history))
    check(TextWrapper(gymnasium.make("Acrobot-v1"), str, ("left", "none", "right")))


def test_actions_may_depend_on_the_state():
    env = TextWrapper(Counter(), lambda n: f"{n}.", fitting)
    _, info = env.reset()
    assert info["actions"] == ("add 1 to 0", "add 2 to 0")
    env.step("add 2 to 0")
    observation, *_, info = env.step(1)
    assert (observation, info["actions"]) == ("4.", ("add 1 to 4",))
    for bad in ("add 2 to 4", "add 1 to 0", 1):
        with pytest.raises(InadmissibleActionError):
            env.step(bad)
    observation, reward, terminated, truncated, info = env.step("add 1 to 4")
    assert (observation, reward, terminated, truncated, info["success"]) == ("5.", 5.0, True, False, True)
    assert [type(x) for x in (reward, terminated, truncated, info["success"])] == [float, bool, bool, bool]
    assert info["vector"] == (5,)


def test_names_count_from_the_start_of_the_space():
    env = TextWrapper(Counter(), str, ("one", "two"))
    env.reset(options={"start": 1})
    assert env.step("two")[0] == env.step("one")[0].replace("4", "3") == "3"


def test_the_environments_own_word_on_success():
    for told, success in [({"success": False}, False), ({"is_success": 1}, True), ({}, True)]:
        base = Counter()
        base.told = told
        env = TextWrapper(base, str, ("one", "two"))
        env.reset(options={"start": 3})
        assert env.step("two")[-1]["success"] is success


def test_a_rule_for_success():
    env = TextWrapper(Counter(), str, ("one", "two"), success=lambda n, *rest: n == 4)
    env.reset(options={"start": 3})
    assert env.step("one")[-1]["success"] is True
    assert env.step("one")[-1]["success"] is False


def test_step_limits():
    short = car(max_steps=2)
    short.reset(seed=0)
    assert [short.step(1)[2:4] for _ in range(2)] == [(False, False), (False, True)]
    own = car()
    own.reset(seed=0)
    assert [t for t in range(1, 201) if own.step(1)[3]] == [200]  # MountainCar's
    with pytest.raises(UsageError, match="reset"):
        own.step(1)


class Space(gymnasium.Env):
    def __init__(self, space):
        self.action_space = space


@pytest.mark.parametrize(
    ("space", "names", "message"),
    [
        (Box(0, 1), ("a",), "Discrete"),
        (MultiDiscrete([2, 2]), ("a", "b"), "Discrete"),
        (Discrete(3), ("a", "b"), "3 actions, but 2 names: a, b"),
        (Discrete(2), ("a", "b", "c"), "2 actions, but 3 names"),
        (Discrete(2), ("a", "a"), "must differ: a, a"),
        (Discrete(2), ("a", ""), "non-empty"),
        (Discrete(2), "ab", "must be non-empty texts"),
        (Discrete(2), (0, 1), "must be non-empty texts"),
    ],
)
def test_what_cannot_be_wrapped(space, names, message):
    with pytest.raises(UsageError, match=message):
        TextWrapper(Space(space), str, names)


def test_a_description_that_is_no_text():
    with pytest.raises(UsageError, match="'describe' must return a text, not ndarray"):
        TextWrapper(gymnasium.make("MountainCar-v0"), lambda x: x, NAMES).reset()


@pytest.mark.parametrize("actions", [{}, {"add": 2}, {"add": "3"}, {"add": None}])
def test_wrong_actions_while_playing(actions):
    env = TextWrapper(Counter(), str, lambda observation, info: actions)
    with pytest.raises(UsageError, match=r"'actions' must name actions of Discrete\(2, start=3\)"):
        env.reset()


def test_rendering():
    env = car()
    observation, _ = env.reset(seed=0)
    assert env.render() == observation
    lake = gymnasium.make("FrozenLake-v1", render_mode="ansi")
    env = TextWrapper(lake, str, ("left", "down", "right", "up"))
    observation, _ = env.reset(seed=0)
    assert env.render_mode == "ansi"
    assert env.render() == f"{lake.render()}\n{observation}"


def test_a_missing_package_for_rendering_is_named():
    class Unseen(Counter):
        render_mode = "rgb_array"
        metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

        def render(self):
            raise gymnasium.error.DependencyNotInstalled("pygame is not installed")

    env = TextWrapper(Unseen(), str, ("one", "two"))
    env.reset()
    with pytest.raises(UsageError, match="pygame is not installed"):
        env.render()


def test_a_copy_is_equal_and_apart():
    env = TextWrapper(gymnasium.make("Blackjack-v1"), str, ("stick", "hit"))
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    cards = [twin.reset() for _ in range(20)]
    assert [env.reset() for _ in range(20)] == cards


def test_close_reaches_the_environment():
    class Closing(Counter):
        closed = False

        def close(self):
            self.closed = True

    base = Closing()
    TextWrapper(base, str, ("one", "two")).close()
    assert base.closed
