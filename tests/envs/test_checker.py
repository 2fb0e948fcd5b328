"""The checker: an honest environment passes, and every broken rule is named."""

import copy
import math
import pickle
import random
import re

import gymnasium
import numpy as np
import pytest

import hunch.envs
from hunch.core import InadmissibleActionError, UsageError
from hunch.envs.base import Outcome, TextEnv, action_name
from hunch.envs.checker import RULES, ContractError, check
from hunch.envs.design import DesignProblem
from hunch.envs.wrappers import History
from hunch.rl.rollout import Rollout

WAYS = ("north", "east", "south", "west")


class Maze(gymnasium.Env):
    """Five doors in a row, each of which opens for one of the ways that are listed."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.doors = [str(way) for way in self.np_random.choice(WAYS, 5)]
        self.passed, self.tries = 0, 0
        return self.look(), self.info()

    def step(self, action):
        if self.over():
            raise UsageError("No episode is running.")
        action = action_name(action, self.ways())
        self.tries += 1
        self.passed += action == self.doors[self.passed]
        return self.look(), float(self.passed == 5), self.passed == 5, self.late(), self.info()

    def over(self):
        return self.passed == 5 or self.late()

    def late(self):
        return self.tries == 20 and self.passed < 5

    def ways(self):
        return WAYS[self.passed % 2 :]

    def look(self):
        return f"Door {self.passed}, try {self.tries}."

    def info(self):
        return {"actions": self.ways(), "success": self.passed == 5, "task": "pass the doors"}


def after(method):
    """A maze whose step or reset answers with what ``method`` makes of its answer."""

    class Changed(Maze):
        def step(self, action):
            return method(self, *super().step(action))

    return Changed


def with_info(change):
    class Changed(Maze):
        def info(self):
            info = super().info()
            change(self, info)
            return info

    return Changed


class GlobalChance(Maze):
    def look(self):
        return f"Door {self.passed} creaks {random.random():.4f}."


class Leftover(Maze):
    total = 0

    def look(self):
        self.total += 1
        return f"You have looked {self.total} times."


class NoIndices(Maze):
    def step(self, action):
        if action is not None and not isinstance(action, str):
            raise InadmissibleActionError("Strings only.")
        return super().step(action)


class WrongIndices(Maze):
    def step(self, action):
        if isinstance(action, int) and 0 <= action < len(self.ways()):
            action = self.ways()[-1 - action]
        return super().step(action)


class Lenient(Maze):
    def step(self, action):
        if action not in self.ways() and isinstance(action, str):
            action = 0
        return super().step(action)


class NegativeIndices(Maze):
    def step(self, action):
        return super().step(self.ways()[-1] if action == -1 else action)


class OtherError(Maze):
    def step(self, action):
        try:
            return super().step(action)
        except InadmissibleActionError as error:
            raise KeyError(action) from error


class CountsFirst(Maze):
    def step(self, action):
        try:
            return super().step(action)
        except InadmissibleActionError:
            self.tries += 1
            raise


class Liar(Maze):
    """West is listed and cannot be taken."""

    def step(self, action):
        if self.passed == 0 and action in ("west", 3):
            raise InadmissibleActionError("There is a wall.")
        return super().step(action)


class NeverOver(Maze):
    def over(self):
        return False

    def look(self):
        return f"Door {min(self.passed, 4)}."

    def step(self, action):
        self.passed = min(self.passed, 4)
        return super().step(action)


class Copied(Maze):
    """Its copies share the doors that are passed."""

    shared: list

    def reset(self, *, seed=None, options=None):
        self.shared = [0]
        return super().reset(seed=seed)

    def step(self, action):
        result = super().step(action)
        self.shared[0] += 1
        return f"Step {self.shared[0]}.", *result[1:]

    def __deepcopy__(self, memo):
        new = copy.copy(self)
        new._np_random, new.doors = copy.deepcopy(self._np_random), list(self.doors)
        return new


class Forgetful(Maze):
    """Its copies begin anew."""

    def __deepcopy__(self, memo):
        new = type(self)()
        new.reset(seed=0)
        return new


class NoSeed(Maze):
    def reset(self):
        return super().reset(seed=0)


class OldReset(Maze):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class Silent(Maze):
    """It says that it tells events and shows a state, and shows no state."""

    offers = ("events", "raw")


class NumberedRooms(Maze):
    def look(self):
        return self.passed


class OneList(Maze):
    """Its raw state is a list that it goes on using."""

    def reset(self, **options):
        self.trace = []
        return super().reset(**options)

    def info(self):
        self.trace.append(self.tries)
        return {**super().info(), "raw": {"trace": self.trace}}


class OneInfo(Maze):
    """It returns the same dict at every step."""

    def reset(self, **options):
        self.shared = {}
        return super().reset(**options)

    def info(self):
        self.shared.update(super().info(), tries=self.tries)
        return self.shared


class Moving(OneList):
    """Its raw state is an array that it changes in place."""

    def reset(self, **options):
        self.place = np.zeros(3)
        return super().reset(**options)

    def info(self):
        self.place += 1
        return {**Maze.info(self), "raw": self.place}


BROKEN = {
    "an event that is a number": ("event", with_info(lambda env, info: info.update(event=3))),
    "reset without seed": ("shape", NoSeed),
    "reset gives no info": ("shape", OldReset),
    "step gives four": ("shape", after(lambda env, o, r, terminated, truncated, info: (o, r, True, info))),
    "info is a list": ("shape", after(lambda env, *seen: (*seen[:4], list(seen[4])))),
    "a number observed": ("observation", NumberedRooms),
    "no actions": ("actions", with_info(lambda env, info: info.pop("actions"))),
    "a list of actions": ("actions", with_info(lambda env, info: info.update(actions=list(WAYS)))),
    "a bare string": ("actions", with_info(lambda env, info: info.update(actions="north"))),
    "numbers for actions": ("actions", with_info(lambda env, info: info.update(actions=(0, 1, 2)))),
    "an empty action": ("actions", with_info(lambda env, info: info.update(actions=("", "north")))),
    "an action twice": ("actions", with_info(lambda env, info: info.update(actions=(*WAYS, "north")))),
    "none left": ("actions", with_info(lambda env, info: info.update(actions=env.ways()[env.tries :]))),
    "no success": ("success", with_info(lambda env, info: info.pop("success"))),
    "success as a number": ("success", with_info(lambda env, info: info.update(success=0))),
    "no task": ("task", with_info(lambda env, info: info.pop("task"))),
    "task is None": ("task", with_info(lambda env, info: info.update(task=None))),
    "task changes, and the event says another": (
        "task",
        with_info(lambda env, info: info.update(task=f"pass {5 - env.passed} doors", event="pass 9 doors")),
    ),
    "task changes": ("task", with_info(lambda env, info: info.update(task=f"pass {5 - env.passed} doors"))),
    "reward is an int": ("reward", after(lambda env, o, r, *rest: (o, int(r), *rest))),
    "reward is nan": ("reward", after(lambda env, o, r, *rest: (o, math.nan, *rest))),
    "reward is None": ("reward", after(lambda env, o, r, *rest: (o, None, *rest))),
    "terminated is a number": ("end", after(lambda env, o, r, end, *rest: (o, r, int(end), *rest))),
    "both ends": ("end", after(lambda env, o, r, end, late, info: (o, r, end or late, late, info))),
    "one list for all steps": ("kept", OneList),
    "one dict for all steps": ("kept", OneInfo),
    "an array that moves": ("kept", Moving),
    "a player by name": ("info", with_info(lambda env, info: info.update(player="white"))),
    "components of the reward": ("info", with_info(lambda env, info: info.update(rewards={"speed": 0.1}))),
    "rewards of nobody": ("info", with_info(lambda env, info: info.update(rewards=[0.5, 0.5]))),
    "moves for a history": ("info", with_info(lambda env, info: info.update(history=[{"move": "e4"}]))),
    "pictures as paths": ("info", with_info(lambda env, info: info.update(pictures=["room.png"]))),
    "offers what it never shows": ("offers", Silent),
    "a wall": ("admissible", Liar),
    "strings only": ("index", NoIndices),
    "indices from the end": ("index", WrongIndices),
    "global chance": ("seed", GlobalChance),
    "something left": ("seed", Leftover),
    "copies share": ("copy", Copied),
    "copies begin anew": ("copy", Forgetful),
    "any string will do": ("inadmissible", Lenient),
    "-1 is the last": ("inadmissible", NegativeIndices),
    "another error": ("inadmissible", OtherError),
    "counts before it looks": ("inadmissible", CountsFirst),
    "goes on after the end": ("after the end", NeverOver),
}


def test_an_honest_environment_passes():
    assert check(Maze()) is None
    assert check(History(Maze(), 2)) is None


@pytest.mark.parametrize(("rule", "broken"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_named(rule, broken):
    with pytest.raises(ContractError, match=re.escape(f"Broken rule {rule!r}")) as error:
        check(broken())
    assert error.value.rule == rule
    assert RULES[rule] in str(error.value)
    assert "\n" not in str(error.value)


def test_a_broken_rule_is_named_behind_a_wrapper():
    with pytest.raises(ContractError) as error:
        check(History(GlobalChance(), 2))
    assert error.value.rule == "seed"


@pytest.mark.parametrize("made", [OneList, Moving])
def test_what_a_state_keeps_is_its_own(made):
    rollout = Rollout([made()], seed=0)
    states, before = [], []
    for _ in range(5):
        (state,) = rollout.states
        states.append(state)
        before.append(copy.deepcopy(state.raw))
        rollout.step([state.options[0]])
    assert [str(state.raw) for state in states] == [str(raw) for raw in before]
    assert len({str(state.raw) for state in states}) == 5


def test_a_copy_of_a_text_environment_shares_nothing():
    class Basket(TextEnv):
        """Take a thing at every step."""

        def _begin(self, options):
            self.taken, self.models = {"things": []}, {"judge": object()}
            return Outcome("An empty basket.", ("take", "wait"))

        def _move(self, action):
            self.taken["things"].append(action)
            return Outcome(", ".join(self.taken["things"]), ("take", "wait"))

    env = Basket(max_steps=9)
    env.reset(seed=0)
    env.step("take")
    twin = copy.deepcopy(env)
    twin.step("wait")
    assert (env.step("take")[0], twin.taken["things"]) == ("take, take", ["take", "wait"])
    assert twin.models["judge"] is env.models["judge"]
    check(Basket(max_steps=9))


def test_every_rule_is_broken_by_some_environment():
    assert {rule for rule, _ in BROKEN.values()} == set(RULES)


def test_an_environment_that_takes_any_text_passes():
    class Echo(TextEnv):
        """Say something."""

        def _begin(self, options):
            return Outcome("Say something.", None)

        def _move(self, action):
            return Outcome(f"You said {len(action)} letters.", None, float(len(action)), event=action)

    assert check(Echo(max_steps=4)) is None
    env = Echo(max_steps=4)
    _, info = env.reset(seed=0)
    assert info["free_text"] is True
    assert "actions" not in info
    observation, reward, *_, info = env.step("hello")
    assert (observation, reward, info["event"]) == ("You said 5 letters.", 5.0, "hello")
    with pytest.raises(InadmissibleActionError):
        env.step(3)


def test_only_a_failed_program_has_a_reward_of_nan():
    class Unpaid(TextEnv):
        """Say something; it is worth nothing that could be counted."""

        def _begin(self, options):
            return Outcome("Say something.", None)

        def _move(self, action):
            return Outcome("You said it.", None, math.nan, terminated=True)

    with pytest.raises(ContractError, match=r"Broken rule 'reward'.* gave nan"):
        check(Unpaid(max_steps=4))
    check(DesignProblem(lambda program: math.nan, task="write anything"))


def test_what_cannot_be_copied_passes():
    class Engine(Maze):
        def __deepcopy__(self, memo):
            raise TypeError("There is a process behind it.")

    assert check(Engine()) is None


def test_nothing_admissible_after_the_task_is_over():
    assert (
        check(with_info(lambda env, info: info.update(actions=() if env.passed == 5 else env.ways()))())
        is None
    )


def test_the_error_can_be_sent():
    error = pickle.loads(pickle.dumps(ContractError("reward", "it is None")))
    assert (error.rule, str(error)) == ("reward", str(ContractError("reward", "it is None")))
    assert isinstance(error, UsageError)


def test_it_is_at_hand():
    assert hunch.envs.check is check
    assert hunch.envs.ContractError is ContractError
    with pytest.raises(AttributeError, match="no_such"):
        _ = hunch.envs.no_such
