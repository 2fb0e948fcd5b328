"""Household tasks in the style of ALFWorld as Gymnasium environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, cast, get_args

import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.household.games import OFFICIAL_SPLITS, Game, files, generated, house, official
from hunch.envs.household.generator import Placement, Split
from hunch.envs.household.goals import KINDS, Kind, UnknownGoalError
from hunch.envs.household.oracle import plan
from hunch.envs.household.simulator import Simulator
from hunch.envs.household.textworld import TextWorldGame

Engine = Literal["hunch", "textworld"]
GO: Final = "go to "
LOOKS: Final = ("look", "inventory", "examine", "help")
"""First words of the actions that change nothing."""

_RISK = (
    "With engine='textworld' any goal can be played, but that evaluates the grammar in the file as Python: "
    "use it on files from people you trust only."
)


class Household(TextEnv):
    """Household tasks of several kinds, in turn, from a fixed pool of games.

    One game of the pool is drawn at each reset.
    The observation is the engine's answer to the last command, the actions are the admissible commands,
    sorted. Reward 1 when the task is solved, which ends the episode, otherwise 0. ``info["game"]`` names the
    game.
    ``reset(options={"game": i})`` plays game ``i`` of the pool instead of a drawn one.

    Generated games are ALFWorld-style: results on them are not ALFWorld scores.

    Args:
        games: Size of the pool. Default: 28 generated games per kind, or all games in files.
        kinds: The kinds of task, as a sequence or separated by commas. Default: all six. Environments of a
            single kind accept no other.
        split: For generated games ``"train"``, or ``"unseen"`` with other goals. For ALFWorld's own games, if
            they are installed, ``"official:train"``, ``"official:valid_seen"`` or
            ``"official:valid_unseen"``.
        placement: ``"typical"`` puts things where people expect them, ``"uniform"`` anywhere they fit.
        pool_seed: Seed of the pool of generated games.
        path: A ``game.tw-pddl`` file, or a folder that is searched for such files; used instead of the games
            of a split, for any kind of task.
        engine: ``"hunch"`` is our simulator, ``"textworld"`` the real engine (extra ``alfworld``): the same
            texts, far slower, not thread-safe. It evaluates a file's grammar as Python.
        described: Say of each place to which one can go what was seen and done there in this episode, in
            ``info["action_descriptions"]``, which decision models read.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if an option is out of range, a game file is missing or damaged, or the real engine is not
            installed.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "history": 8}  # type: ignore[misc]
    offers = ("events",)
    kind: ClassVar[Kind | None] = None

    def __init__(
        self,
        *,
        games: int | None = None,
        kinds: str | Sequence[str] | None = None,
        split: str = "train",
        placement: Placement = "typical",
        pool_seed: int = 0,
        path: str | Path | None = None,
        engine: Engine = "hunch",
        described: bool = False,
        max_steps: int = 50,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        _check_choice("split", split, (*get_args(Split), *OFFICIAL_SPLITS))
        _check_choice("placement", placement, get_args(Placement))
        _check_choice("engine", engine, get_args(Engine))
        if games is not None and games < 1:
            raise UsageError(f"games must be at least 1, not {games}.")
        self.kinds = self._chosen(kinds)
        self.engine = engine
        self.described = described
        self._at = ""
        self._seen: dict[str, str] = {}  # what was seen and done at each place, by its name
        self.pool: tuple[Game, ...]
        self._trusted = path is None
        if path is not None:
            self.pool = files(Path(path), games)
        elif split in OFFICIAL_SPLITS:
            self.pool = official(self.kinds, split, games)
        else:
            self.pool = generated(self.kinds, cast(Split, split), placement, pool_seed, games)
        self._game = self.pool[0]
        # A damaged file or a missing engine should be reported now and not in the middle of a run.
        self._play = self._start(self._game)

    @property
    def simulator(self) -> Simulator:
        """The current game; with the real engine, our simulator in the same state.

        Raises:
            UnknownGoalError: if its goal is not one of the six known kinds.
        """
        return self._play if isinstance(self._play, Simulator) else self._play.simulator()

    def oracle(self) -> tuple[str, ...] | None:
        """Return the shortest scripted solution, with full knowledge; None if there is none.

        Raises:
            UnknownGoalError: if the goal is not one of the six known kinds.
        """
        return plan(self.simulator)

    def _chosen(self, kinds: str | Sequence[str] | None) -> tuple[Kind, ...]:
        possible = KINDS if self.kind is None else (self.kind,)
        wanted = possible if kinds is None else kinds.split(",") if isinstance(kinds, str) else kinds
        if not isinstance(wanted, Sequence) or not wanted:
            raise UsageError(f"kinds must be one or more of {', '.join(possible)}.")
        for kind in wanted:
            _check_choice("kinds", kind, possible)
        return tuple(kind for kind in possible if kind in wanted)

    def _start(self, game: Game) -> Simulator | TextWorldGame:
        if self.engine == "textworld":
            return TextWorldGame(game)
        try:
            return Simulator(house(game))
        except UnknownGoalError as error:
            # The real engine evaluates what is in a file, so that has to be asked for, if the file may come
            # from anywhere.
            if not self._trusted:
                raise UnknownGoalError(f"{error} {_RISK}") from None
            try:
                return TextWorldGame(game)
            except UsageError as failure:
                raise UsageError(f"{error} {failure}") from None

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        unknown = set(options) - {"game"}
        if unknown:
            raise UsageError(f"There is no reset option {unknown.pop()!r}; there is: game.")
        index = options["game"] if "game" in options else int(self.task_random.integers(len(self.pool)))
        is_whole = isinstance(index, (int, np.integer)) and not isinstance(index, bool)  # 1.0 == True == 1
        if not is_whole or index not in range(len(self.pool)):
            raise UsageError(f"There is no game {index!r}: the pool holds games 0 to {len(self.pool) - 1}.")
        self._play = self._start(self.pool[index])
        self._game, self.task = self.pool[index], self._play.task
        self._at, self._seen = "", {}
        return Outcome(self._play.introduction(), self._play.commands)

    def _move(self, action: str) -> Outcome:
        text = self._play.step(action)
        self._remember(action, text)
        won = self._play.won
        return Outcome(text, self._play.commands, float(won), terminated=won, success=won, event=text)

    def _remember(self, action: str, text: str) -> None:
        """Note what was seen on arrival at a place, and what was done there since."""
        if action.startswith(GO):
            self._at = action.removeprefix(GO)
            self._seen[self._at] = text.partition(". ")[2]  # without "You arrive at ..."
        elif self._at and action.split()[0] not in LOOKS:
            self._seen[self._at] = f"{self._seen[self._at]} {text}"

    def _extras(self) -> dict[str, Any]:
        extras: dict[str, Any] = {"game": str(self._game)}
        if self.described:
            extras["action_descriptions"] = {
                action: self._seen.get(action.removeprefix(GO)) or "not visited yet"
                for action in self._play.commands
                if action.startswith(GO)
            }
        return extras

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy what a step changes in place."""
        self._play = self._play.copy()
        self._seen = dict(self._seen)


class HouseholdPick(Household):
    """Find an object and put it where it belongs."""

    kind = "pick"


class HouseholdExamine(Household):
    """Find an object and look at it under a lamp that is turned on."""

    kind = "examine"


class HouseholdClean(Household):
    """Find an object, clean it in the sink and put it where it belongs."""

    kind = "clean"


class HouseholdHeat(Household):
    """Find an object, heat it in the microwave and put it where it belongs."""

    kind = "heat"


class HouseholdCool(Household):
    """Find an object, cool it in the fridge and put it where it belongs."""

    kind = "cool"


class HouseholdPickTwo(Household):
    """Find two objects of a kind and put both where they belong."""

    kind = "picktwo"


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{name} must be {' or '.join(choices)}, not {value!r}.")
