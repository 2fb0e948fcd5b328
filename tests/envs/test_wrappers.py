from typing import ClassVar

import gymnasium
import pytest

import hunch.envs
from hunch.core import InadmissibleActionError, State, UsageError
from hunch.envs import TextWrapper
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.checker import check
from hunch.envs.household.env import HouseholdPick
from hunch.envs.wrappers import History, Written
from hunch.rl.episodes import play


def test_history_tells_pairs_beside_the_observation():
    env, plain = History(HouseholdPick(games=1), 2), HouseholdPick(games=1)
    first, info = env.reset(seed=0)
    assert info["history"] == ()
    assert first == plain.reset(seed=0)[0]
    go = next(action for action in info["actions"] if action.startswith("go to"))
    second, *_, info = env.step(go)
    assert second == plain.step(go)[0]
    assert info["history"] == ((first, go),)
    third, *_, info = env.step(info["actions"].index("inventory"))
    assert info["history"] == ((first, go), (second, "inventory"))
    *_, info = env.step("help")
    assert info["history"] == ((second, "inventory"), (third, "help"))


def test_a_state_prints_its_history():
    """One line for an action, every other line that was seen, and no blank one."""
    env = History(HouseholdPick(games=1), 2)
    first, info = env.reset(seed=0)
    go = next(action for action in info["actions"] if action.startswith("go to"))
    second, *_, info = env.step(go)
    lines = [line for line in first.splitlines() if line]
    assert State.read(second, info).text() == "\n".join([*lines, f"> {go}", second])


def test_history_is_forgotten_at_reset_and_kept_at_an_error():
    env = History(HouseholdPick(games=1), 3)
    first, _ = env.reset(seed=0)
    env.step("look")
    with pytest.raises(InadmissibleActionError):
        env.step("fly")
    *_, info = env.step("look")
    assert [action for _, action in info["history"]] == ["look", "look"]
    observation, info = env.reset(seed=0)
    assert (observation, info["history"]) == (first, ())


def test_no_history_is_none():
    env = History(HouseholdPick(games=1), 0)
    env.reset(seed=0)
    assert env.step("help")[4]["history"] == ()


def test_a_negative_history_is_refused():
    with pytest.raises(UsageError, match="-1"):
        hunch.envs.make("hunch/FrozenLake-v0", history=-1)


class Paying(TextEnv):
    """Two players by turns; each move pays who makes it, at the cost of the other."""

    metadata: ClassVar = {"render_modes": ["ansi"], "players": 2}
    offers = ()

    def _begin(self, options):
        self.mover, self.paid = 0, [0.0, 0.0]
        return Outcome("Your move.", ("go", "stay"))

    def _move(self, action):
        self.paid = [1.0, -1.0] if self.mover == 0 else [-1.0, 1.0]
        self.mover = 1 - self.mover
        return Outcome("Your move.", ("go", "stay"), self.paid[0])

    def _extras(self):
        return {"player": self.mover, "rewards": self.paid}


def test_a_refused_text_pays_no_player_again():
    env = Written(Paying(max_steps=4))
    env.reset(seed=0)
    assert env.step("go")[4]["rewards"] == [1.0, -1.0]
    assert "rewards" not in env.step("fly")[4]

    texts = iter(["go", "fly", "fly", "fly"])
    steps = list(play(Written(Paying(max_steps=4)), lambda state: next(texts), seed=0))
    assert sum(step.reward for step in steps if step.stream == 0) == 1.0


class Undeclared(TextEnv):
    """A room with a door; it tells events and its state, and does not say so."""

    def _begin(self, options):
        self.open = False
        return Outcome("A door.", ("knock", "open"))

    def _move(self, action):
        self.open = action == "open"
        return Outcome("A door.", ("knock", "open"), terminated=self.open, success=self.open, event=action)

    def _raw(self):
        return self.open


@pytest.mark.parametrize(
    "made",
    [
        lambda: hunch.envs.make("hunch/FrozenLake-v0", described=True, written=True),
        lambda: hunch.envs.make("hunch/Taxi-v0", masked=True, written=True, max_steps=8),
        lambda: Written(Undeclared(max_steps=8)),
    ],
)
def test_written_actions_keep_the_contract(made):
    env = made()
    _, info = env.reset(seed=0)
    assert not {"actions", "action_descriptions"} & info.keys()
    assert env.step("fly")[4]["event"] == "Nothing happens."
    check(env, episodes=2, steps=8)


@pytest.mark.parametrize("action", [0, None, True])
def test_what_is_no_text_is_no_written_action(action):
    env = History(Written(HouseholdPick(games=1, max_steps=2)), 2)
    env.reset(seed=0)
    with pytest.raises(InadmissibleActionError, match=f"a text here, not {action!r}"):
        env.step(action)
    assert [env.step("fly")[3], env.step("fly")[3]] == [False, True]  # it cost no step


def test_the_step_limit_may_be_that_of_gymnasium():
    env = gymnasium.make("CliffWalking-v1", max_episode_steps=3)
    words = TextWrapper(env, describe=str, actions=("up", "right", "down", "left"), task="cross")
    written = Written(words)
    written.reset(seed=0)
    assert [written.step(text)[3] for text in ("up", "fly", "fly")] == [False, False, True]
    longer = TextWrapper(
        gymnasium.make("FrozenLake-v1"), describe=str, actions=("w", "s", "e", "n"), task="", max_steps=300
    )
    assert longer.max_steps == 100, "the environment's own limit is reached first"
    endless = gymnasium.make("CliffWalking-v1")
    with pytest.raises(UsageError, match="no step limit"):
        Written(TextWrapper(endless, describe=str, actions=("up", "right", "down", "left"), task="cross"))
