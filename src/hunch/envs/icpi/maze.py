"""Maze: three by three cells and two walls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from hunch.envs.icpi.base import Domain, Step, whole
from hunch.envs.icpi.texts import Texts

Cell = tuple[int, int]

SIZE, GOAL = 3, (1, 0)
# Cells are at odd rows and columns; what lies between two of them is a way or a wall.
_MAP = ("#######", "#.....#", "#.#.#.#", "#G#...#", "#.###.#", "#.....#", "#######")
_MOVES = {"left": (0, -1), "down": (1, 0), "up": (-1, 0), "right": (0, 1)}
_DISTANCES = ((1, 2, 3), (0, 3, 4), (1, 2, 3))


class MazeTexts(Texts):
    """The texts for prompts about the maze."""

    actions: ClassVar[Mapping[str, str]] = {name: f"state, reward = {name}()\n" for name in _MOVES}
    max_rollout_steps = 6


class Maze(Domain[Cell]):
    """Find the way to cell (1, 0) of a maze of 3 x 3 cells, and act there.

    Cells are (row, column) from the upper left. Walls stand between (1, 0) and (1, 1) and between (1, 1) and
    (2, 1); a move into a wall or over the border changes nothing. The reward of 1 and the end belong to the
    action *after* the arrival: any action on the goal earns it, and is still carried out. Episodes start on
    any cell, the goal too. A state is ``[row, column]``; the optimum is 0.8 to the power of its distance.

    Args:
        hints: Add a clause that compares the cell with the goal.
        max_steps: Step limit of an episode; it truncates.
        render_mode: ``"ansi"`` or ``"rgb_array"``: the agent is ``@``, the goal ``G``.
    """

    wording = MazeTexts()
    task = "go to cell (1, 0) and act there once more"
    form = "[row, column], both from 0 to 2"

    def _draw(self) -> Cell:
        return divmod(self._any(SIZE * SIZE), SIZE)

    def _read(self, given: Any) -> Cell | None:
        match given:
            case [row, column] if whole(0, SIZE - 1, row, column):
                return row, column
        return None

    def _advance(self, action: str) -> Step[Cell]:
        return _advance(self._state, action)

    def _text(self) -> str:
        return _text(self._state, self.hints)

    def _optimum(self) -> float:
        row, column = self._state
        return float(self.wording.log_gamma ** _DISTANCES[row][column])

    def _grid(self) -> list[str]:
        rows = [list(row) for row in _MAP]
        rows[2 * self._state[0] + 1][2 * self._state[1] + 1] = "@"
        return ["".join(row) for row in rows]


@cache
def _advance(cell: Cell, action: str) -> Step[Cell]:
    there = cell == GOAL
    return _neighbour(cell, action), float(there), there, there


def _neighbour(cell: Cell, action: str) -> Cell:
    (row, column), (down, right) = cell, _MOVES[action]
    wall = _MAP[2 * row + 1 + down][2 * column + 1 + right] == "#"
    return cell if wall else (row + down, column + right)


@cache
def _text(cell: Cell, hints: bool) -> str:
    hint = f" and state {'==' if cell == GOAL else '!='} {_named(GOAL)}" if hints else ""
    return f"assert state == {_named(cell)}{hint}\n"


def _named(cell: Cell) -> str:
    return f"C(i={cell[0]}, j={cell[1]})"
