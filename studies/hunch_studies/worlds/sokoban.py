"""Sokoban in a room of 5 x 5 cells with one box, small enough for a model to write it as code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch_studies.rules import dynamics  # noqa: F401  what the scripted writer knows of it

SIZE = 5
_MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
_ACTIONS = tuple(_MOVES)
Room = tuple[int, int, int, int, int, int]
"""Row and column of the player, of the box, and of the goal."""


class Sokoban(TextEnv):
    """Push a box onto its goal, in a room of 5 x 5 cells.

    The box can be pushed but not pulled. A move of the player or the box into a wall changes nothing. Player,
    box and goal are drawn so that there is a solution. The episode ends with reward 1 when the box is on its
    goal; every other step has reward 0.

    Args:
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or ``"rgb_array"``; the player is ``@``, the box ``$``, its goal ``.``.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"]}  # type: ignore[misc]
    offers = ("events", "raw")
    task = "push the box onto its goal"

    def __init__(self, *, max_steps: int = 50, render_mode: str | None = None) -> None:
        super().__init__(max_steps, render_mode)
        self._room: Room = (0, 0, 1, 1, 2, 2)

    def oracle(self) -> tuple[str, ...] | None:
        """Return the shortest solution from here; None if there is none."""
        return _solution(self._room)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Sokoban has no reset option {next(iter(options))!r}.")
        while True:
            drawn = self.task_random.permutation(SIZE * SIZE)[:3]
            (a, b), (c, d), (e, f) = (divmod(int(cell), SIZE) for cell in drawn)
            self._room = (a, b, c, d, e, f)
            if _solution(self._room):
                return self._outcome()

    def _move(self, action: str) -> Outcome:
        before, self._room = self._room, _moved(self._room, action)
        if self._room == before:
            event = "There is a wall in the way."
        else:
            event = "You push the box." if self._room[2:4] != before[2:4] else f"You go {action}."
        return self._outcome()._replace(event=event)

    def _raw(self) -> Room:
        return self._room

    def _place(self, raw: Any) -> Outcome:
        a, b, c, d, e, f = (int(number) for number in raw)
        self._room = (a, b, c, d, e, f)
        return self._outcome()

    def _outcome(self) -> Outcome:
        row, column, box_row, box_column, goal_row, goal_column = self._room
        solved = (box_row, box_column) == (goal_row, goal_column)
        text = (
            f"You are at row {row}, column {column}. The box is at row {box_row}, column {box_column}, and "
            f"its goal at row {goal_row}, column {goal_column}. Rows count from the top, columns from the "
            f"left, both from 0 to {SIZE - 1}."
        )
        return Outcome(text, _ACTIONS, float(solved), terminated=solved, success=solved)

    def _grid(self) -> list[str]:
        cells = [[" "] * SIZE for _ in range(SIZE)]
        row, column, box_row, box_column, goal_row, goal_column = self._room
        for mark, r, c in ((".", goal_row, goal_column), ("$", box_row, box_column), ("@", row, column)):
            cells[r][c] = mark
        return ["#" * (SIZE + 2), *(f"#{''.join(line)}#" for line in cells), "#" * (SIZE + 2)]


def _moved(room: Room, action: str) -> Room:
    row, column, box_row, box_column, goal_row, goal_column = room
    down, right = _MOVES[action]
    row, column = row + down, column + right
    if (row, column) == (box_row, box_column):
        box_row, box_column = box_row + down, box_column + right
    inside = all(0 <= number < SIZE for number in (row, column, box_row, box_column))
    return (row, column, box_row, box_column, goal_row, goal_column) if inside else room


def _solution(room: Room) -> tuple[str, ...] | None:
    ways: dict[Room, tuple[str, ...]] = {room: ()}
    for here in (queue := [room]):
        if here[2:4] == here[4:6]:
            return ways[here]
        for action in _ACTIONS:
            there = _moved(here, action)
            if there not in ways:
                ways[there] = (*ways[here], action)
                queue.append(there)
    return None
