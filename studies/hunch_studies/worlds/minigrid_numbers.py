"""A sequence of MiniGrid levels with states in MiniGrid's own numbers, for world models written as code."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

from hunch.core import UsageError
from hunch.envs.base import Outcome
from hunch.ranges import PositiveInt
from hunch_studies.worlds.keys import ACTIONS, Keys

Level = Literal["empty", "door-key", "unlock", "fetch", "unlock-pickup", "blocked-unlock-pickup"]
LEVELS: Final[Mapping[Level, tuple[str, Mapping[str, Any]]]] = {
    "empty": ("Empty", {"size": 5}),
    "door-key": ("DoorKey", {"size": 5}),
    "unlock": ("Unlock", {}),
    "fetch": ("Fetch", {"size": 6, "numObjs": 2}),
    "unlock-pickup": ("UnlockPickup", {}),
    "blocked-unlock-pickup": ("BlockedUnlockPickup", {}),
}
"""In the order of WorldCoder's curriculum (released code), with the settings of ``minigrid``'s classes."""
Cell: TypeAlias = tuple[int, int, int]
"""Kind, colour and condition of the thing in a cell, as ``minigrid`` encodes it; (1, 0, 0) is nothing."""
NOTHING: Final[Cell] = (1, 0, 0)
KNOWN: Final = {"door": "door", "box": "obj"}
"""Attributes of levels that hold a thing; the levels detect success by them."""


class MiniGrid(Keys):
    """Levels of MiniGrid that follow one another, with states in numbers.

    The six actions are always admissible. Reward 1 and success for the mission, otherwise 0. ``info["raw"]``
    is (column, row, direction, carried thing, cells). Cells come row by row; a cell or thing is three
    numbers: kind, colour and condition.

    Args:
        levels: The levels in order; the default is the beginning of WorldCoder's curriculum.
        each: Episodes per level before the next level; the last level stays.
        max_steps: Step limit of an episode (released code of WorldCoder: 100).
        render_mode: ``"ansi"`` or ``"rgb_array"``, which is the drawing of ``minigrid``.

    Raises:
        UsageError: if there is no level, or ``minigrid`` is not installed.
    """

    offers = ("events", "raw")

    def __init__(
        self,
        *,
        levels: tuple[Level, ...] = ("empty", "door-key", "unlock"),
        each: PositiveInt = 10,
        max_steps: int = 100,
        render_mode: str | None = None,
    ) -> None:
        if not levels:
            raise UsageError(f"Name a level, such as {', '.join(LEVELS)}.")
        super().__init__(*LEVELS[levels[0]], max_steps, render_mode)
        self.levels, self.each, self.level = tuple(levels), each, levels[0]

    def level_of(self, episode: int) -> Level:
        """The level of an episode."""
        return self.levels[min(episode // self.each, len(self.levels) - 1)]

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if (level := self.level_of(self.episode)) != self.level:
            self._take_up(*LEVELS[level])
            self.level = level
        return super()._begin(options)

    def _raw(self) -> Any:
        level = self._level
        held = NOTHING if level.carrying is None else level.carrying.encode()
        x, y = level.agent_pos
        rows = level.grid.encode().transpose(1, 0, 2).tolist()
        cells = tuple(tuple(tuple(cell) for cell in row) for row in rows)
        return int(x), int(y), int(level.agent_dir), _cell(held), cells

    def _place(self, raw: Any) -> Outcome:
        level = self._level
        x, y, direction, held, cells = raw
        grid = type(level.grid)(len(cells[0]), len(cells))
        for row, line in enumerate(cells):
            for column, cell in enumerate(line):
                grid.set(column, row, self._put(cell))
        level.grid, level.carrying = grid, self._put(held)
        level.agent_pos, level.agent_dir, level.step_count = (x, y), direction, 0
        return Outcome(self._text(), ACTIONS)

    def _put(self, cell: Any) -> Any:
        """The thing for a cell's numbers, registered with the level; None for nothing."""
        if tuple(cell) == NOTHING:
            return None
        thing = import_module("minigrid.core.world_object").WorldObj.decode(*cell)
        if thing.type in KNOWN:
            setattr(self._level, KNOWN[thing.type], thing)
        return thing


def _cell(encoded: Any) -> Cell:
    kind, colour, condition = encoded
    return int(kind), int(colour), int(condition)
