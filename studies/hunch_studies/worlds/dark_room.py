"""Dark rooms: somewhere in the room is what pays, and nothing shows where, as in Laskin et al., ICLR 2023.

A task is a hidden cell, or a pair of cells. It comes from ``task_random``, so that it is the same in all
episodes of a lifetime. An agent that remembers earlier episodes can go straight to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
from annotated_types import Ge

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv

Cell = tuple[int, int]
Split = Literal["train", "test", "all"]
MOVES: Final[Mapping[str, Cell]] = {
    "stay": (0, 0),
    "go up": (-1, 0),
    "go down": (1, 0),
    "go left": (0, -1),
    "go right": (0, 1),
}
_ACTIONS: Final = tuple(MOVES)
TEST_SHARE: Final = 0.25
"""Share of the tasks that are held out."""


class DarkRoom(TextEnv):
    """Find the cell of a dark room that pays, and stay there.

    Every step on the hidden goal pays 1. An episode begins in the middle of the room and has a fixed length,
    because an end at the goal would tell where it is. Rows and columns count from 1 at the upper left.

    Args:
        size: Number of rows and of columns, at least 3.
        length: Steps of an episode. Default: 15.
        goals: Which goals there are: those of training, the quarter that is held out, or all. The start is
            none of them.
        split_seed: Seed of the choice of the held-out quarter.
        render_mode: ``"ansi"`` or ``"rgb_array"``.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"]}  # type: ignore[misc]
    offers = ("events", "raw")
    task = "Find the cell of the dark room that pays, and stay there."
    targets: ClassVar[int] = 1
    steps: ClassVar[int] = 15
    """Steps of an episode by default."""

    def __init__(
        self,
        *,
        size: Annotated[int, Ge(3)] = 7,
        length: int | None = None,
        goals: Split = "train",
        split_seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(self.steps if length is None else length, render_mode)
        self.size, self.goals = size, goals
        self.tasks = split(self._all(), goals, split_seed)
        self._targets: tuple[Cell, ...] = ()
        self._position = self._start

    @property
    def _start(self) -> Cell:
        return (self.size + 1) // 2, (self.size + 1) // 2

    def _all(self) -> list[tuple[Cell, ...]]:
        """All tasks in a fixed order: different cells, none of which is the start."""
        numbers = range(1, self.size + 1)
        cells = [(row, column) for row in numbers for column in numbers if (row, column) != self._start]
        return list(permutations(cells, self.targets))

    def oracle(self) -> tuple[str, ...]:
        """Return the best actions for the rest of the episode."""
        here, way = self._position, list[str]()
        for target in self._targets:
            way += path(here, target)
            here = target
        left = self.max_steps - self._steps
        return tuple([*way, *["stay"] * left][:left])

    @staticmethod
    def best(raw: Any) -> str:
        """Return the best action in a state of ``info["raw"]``, for references and labels only."""
        position, targets = raw
        return next(iter(path(position, targets[0]) if targets else ()), "stay")

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"{type(self).__name__} has no reset option {next(iter(options))!r}.")
        self._position = self._start
        self._targets = self.tasks[int(self.task_random.integers(len(self.tasks)))]
        return Outcome(self._text(), _ACTIONS)

    def _move(self, action: str) -> Outcome:
        (row, column), (down, right) = self._position, MOVES[action]
        self._position = min(max(row + down, 1), self.size), min(max(column + right, 1), self.size)
        reward, event = self._paid()
        return Outcome(self._text(), _ACTIONS, reward, over := self._over, over and self._solved, event=event)

    @property
    def _over(self) -> bool:
        """True after the last move of the episode, whose length is part of the task."""
        return self._steps + 1 >= self.max_steps

    @property
    def _solved(self) -> bool:
        return self._position == self._targets[0]

    def _paid(self) -> tuple[float, str]:
        """Return the reward of the new position, and what happened there."""
        here = self._position == self._targets[0]
        return float(here), "This cell pays." if here else ""

    def _raw(self) -> list[Any]:
        return [list(self._position), [list(target) for target in self._targets]]

    def _place(self, raw: Any) -> Outcome:
        """Continue from a position; what is hidden is drawn again, as many cells as are left to find."""
        self._position = (int(raw[0][0]), int(raw[0][1]))
        drawn = self.tasks[int(self.np_random.integers(len(self.tasks)))]
        self._targets = drawn[len(drawn) - len(raw[1]) :]
        return Outcome(self._text(), _ACTIONS)

    def _grid(self) -> Sequence[str]:
        cells = [["."] * self.size for _ in range(self.size)]
        for (row, column), mark in [*((cell, "G") for cell in self._targets), (self._position, "@")]:
            cells[row - 1][column - 1] = mark
        return ["".join(row) for row in cells]

    def _text(self) -> str:
        return "You are in row {}, column {}.".format(*self._position)


class DarkKeyToDoor(DarkRoom):
    """Find the key of a dark room, and then its door.

    The cell of the key pays 1 once, and after that the cell of the door pays 1 once. Neither is visible, and
    the observation does not tell whether you have the key. Options are those of ``hunch/DarkRoom-v0``, and a
    quarter of the pairs of cells is held out.
    """

    task = "Find the key of the dark room, and then its door."
    targets = 2
    steps = 50

    def _paid(self) -> tuple[float, str]:
        if not self._targets or self._position != self._targets[0]:
            return 0.0, ""
        self._targets = self._targets[1:]
        return 1.0, "You find the key." if self._targets else "You open the door."

    @property
    def _solved(self) -> bool:
        return not self._targets


def split(tasks: Sequence[Any], part: Split, seed: int) -> list[Any]:
    """Return the tasks of training, the held-out quarter, or all.

    Args:
        tasks: All tasks.
        part: Which of them.
        seed: Seed of the choice.
    """
    order = np.random.default_rng(seed).permutation(len(tasks))
    held = set(order[: round(TEST_SHARE * len(tasks))].tolist())
    return [task for i, task in enumerate(tasks) if part == "all" or (i in held) == (part == "test")]


def path(start: Sequence[int], end: Sequence[int]) -> list[str]:
    """Return a shortest way between two cells: rows first, then columns."""
    down, right = end[0] - start[0], end[1] - start[1]
    return ["go down" if down > 0 else "go up"] * abs(down) + ["go right" if right > 0 else "go left"] * abs(
        right
    )
