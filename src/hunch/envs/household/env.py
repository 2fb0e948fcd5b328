"""Household tasks as Gymnasium environments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, get_args

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.household.generator import Placement, Recipe, Split, generate
from hunch.envs.household.goals import Kind
from hunch.envs.household.house import House
from hunch.envs.household.oracle import plan
from hunch.envs.household.problem import SUFFIX, read
from hunch.envs.household.simulator import Simulator


class Household(TextEnv):
    """A household task over a fixed pool of games, one of which is drawn at each reset.

    The observation is the engine's answer to the last command, the actions are the admissible commands,
    sorted. Reward 1 when the task is solved, which ends the episode, otherwise 0. ``info["game"]`` names the
    game.
    ``reset(options={"game": i})`` plays game ``i`` of the pool instead of a drawn one.

    Generated games are ALFWorld-style: results on them are not ALFWorld scores.

    Args:
        games: Size of the pool; by default 28 generated games, or all that ``path`` holds.
        split: ``"train"``, or ``"unseen"``, which shares no goal with it.
        placement: ``"typical"`` puts things where one would look for them, ``"uniform"`` anywhere they fit.
        pool_seed: Which pool of generated games.
        path: A ``game.tw-pddl`` file, or a folder searched for such files; used instead of generated games,
            whatever kind of task the files hold.
        max_steps: The step limit of an episode.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if an option is out of range, or a game file is missing or damaged.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "history": 8}  # type: ignore[misc]
    kind: ClassVar[Kind]

    def __init__(
        self,
        *,
        games: int | None = None,
        split: Split = "train",
        placement: Placement = "typical",
        pool_seed: int = 0,
        path: str | Path | None = None,
        max_steps: int = 50,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        _check_choice("split", split, get_args(Split))
        _check_choice("placement", placement, get_args(Placement))
        if games is not None and games < 1:
            raise UsageError(f"games must be at least 1, not {games}.")
        self.pool: tuple[Recipe | Path, ...]
        if path is None:
            indices = range(28 if games is None else games)
            self.pool = tuple(Recipe(self.kind, split, placement, pool_seed, i) for i in indices)
        else:
            self.pool = _game_files(Path(path))[:games]
        self._game = self.pool[0]
        # A damaged file or an impossible pool should be heard of now and not in the middle of a run.
        self._simulator = Simulator(_house(self._game))

    @property
    def simulator(self) -> Simulator:
        """The game in play."""
        return self._simulator

    def oracle(self) -> tuple[str, ...] | None:
        """Return the shortest scripted way to the goal, with full knowledge; None if there is none."""
        return plan(self._simulator)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        unknown = set(options) - {"game"}
        if unknown:
            raise UsageError(f"There is no reset option {unknown.pop()!r}; there is: game.")
        index = options["game"] if "game" in options else int(self.np_random.integers(len(self.pool)))
        if index not in range(len(self.pool)):
            raise UsageError(f"There is no game {index!r}: the pool holds games 0 to {len(self.pool) - 1}.")
        house = _house(self.pool[index])
        self._game, self._simulator = self.pool[index], Simulator(house)
        self.task = house.problem.task
        return Outcome(self._simulator.introduction(), self._simulator.commands)

    def _move(self, action: str) -> Outcome:
        text = self._simulator.step(action)
        won = self._simulator.won
        return Outcome(text, self._simulator.commands, float(won), terminated=won, success=won)

    def _extras(self) -> dict[str, Any]:
        return {"game": str(self._game)}

    def _fork(self) -> None:
        self._simulator = self._simulator.copy()


class HouseholdPick(Household):
    """Find an object and put it where it belongs."""

    kind = "pick"


class HouseholdExamine(Household):
    """Find an object and look at it under a lamp that is turned on."""

    kind = "examine"


@lru_cache(maxsize=256)
def _house(game: Recipe | Path) -> House:
    # Environments that play the same game share it, with all the texts that it remembers.
    return House(generate(game) if isinstance(game, Recipe) else read(game))


def _game_files(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        return (path,)
    if not path.exists():
        raise UsageError(f"There is no game file or folder {path}.")
    files = tuple(sorted(path.rglob(f"*{SUFFIX}")))
    if not files:
        raise UsageError(f"The folder {path} holds no {SUFFIX} file.")
    return files


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{name} must be {' or '.join(choices)}, not {value!r}.")
