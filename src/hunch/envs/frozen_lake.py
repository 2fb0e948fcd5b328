"""Frozen Lake in words, as in "Efficient Reinforcement Learning with Large Language Model Priors"."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, ClassVar

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv

Cell = tuple[int, int]

_LAKE = ("SFFF", "FHFH", "FFFH", "HFFG")
_CELLS = {"S": "start position", "F": "a frozen cell (F)", "H": "a hole (H)", "G": "the goal (G)"}
_MOVES = {"Go Left": (0, -1), "Go Right": (0, 1), "Go Up": (-1, 0), "Go Down": (1, 0)}
_ACTIONS = tuple(_MOVES)
_RULES = (
    "You are in a 4x4 grid where each cell is either a frozen cell (F) indicating a safe position, "
    "You must avoid to reach a hole (H), and the goal (G) that we aim to reach."
)
_WHERE = "Currently the agent is at position ({}, {}), which direction need to take?"


class FrozenLake(TextEnv):
    """Cross a frozen lake of 4 x 4 cells without falling into one of its holes.

    Position (row, column) counts from the upper left. The start is (0, 0), the goal (3, 3); the holes are
    (1, 1), (1, 3), (2, 3) and (3, 0). The ice is not slippery, and a move over the border changes nothing.
    Reward 1 on the goal, -1 in a hole, otherwise 0; both end the episode. The shortest way has 6 moves.

    Args:
        lookahead: Add a sentence for each action that says where it leads, as the paper's prompt has it.
        explained: State the task and the rules; False leaves out both, for the blank prompt of a prior.
        described: Give these sentences apart, as descriptions of the actions, which decision models read.
        max_steps: The step limit of an episode; the paper's is 20.
        render_mode: ``"ansi"`` or ``"rgb_array"``; the agent is ``@``.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"]}  # type: ignore[misc]
    offers = ("events", "raw")

    def __init__(
        self,
        *,
        lookahead: bool = True,
        explained: bool = True,
        described: bool = False,
        max_steps: int = 20,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        self.lookahead = lookahead
        self.explained = explained
        self.task = "reach the goal (G) and avoid the holes (H)" if explained else ""
        self.described = described
        self._position: Cell = (0, 0)

    def oracle(self) -> tuple[str, ...] | None:
        """Return the shortest path to the goal; None if the agent is in a hole."""
        ways: dict[Cell, tuple[str, ...]] = {self._position: ()}
        for cell in (queue := list(ways)):
            if _cell(cell) == "G":
                return ways[cell]
            for action in _ACTIONS if _cell(cell) != "H" else ():
                there = _neighbour(cell, action)
                if there not in ways:
                    ways[there] = (*ways[cell], action)
                    queue.append(there)
        return None

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"FrozenLake has no reset option {next(iter(options))!r}.")
        self._position = (0, 0)
        return Outcome(self._text(), _ACTIONS)

    def _move(self, action: str) -> Outcome:
        self._position = _neighbour(self._position, action)
        cell = _cell(self._position)
        reward = {"G": 1.0, "H": -1.0}.get(cell, 0.0)
        event = f"{action}: you are on {_CELLS[cell]}."
        return Outcome(self._text(), _ACTIONS, reward, cell in "GH", cell == "G", event=event)

    def _raw(self) -> Cell:
        return self._position

    def _place(self, raw: Any) -> Outcome:
        try:
            row, column = map(operator.index, raw)
        except (TypeError, ValueError):
            row = column = -1
        if not (0 <= row <= 3 and 0 <= column <= 3):
            raise self._no_state("a row and a column, each a whole number from 0 to 3", raw)
        self._position = (row, column)
        return Outcome(self._text(), _ACTIONS)

    def _extras(self) -> dict[str, Any]:
        if not (self.described and self.lookahead):
            return {}
        return {"action_descriptions": {action: _consequence(self._position, action) for action in _ACTIONS}}

    def _grid(self) -> list[str]:
        cells = [list(row) for row in _LAKE]
        cells[self._position[0]][self._position[1]] = "@"
        return ["".join(row) for row in cells]

    def _text(self) -> str:
        where = _WHERE.format(*self._position)
        text = f"{_RULES} Input: {where}" if self.explained else where
        if self.described or not self.lookahead:
            return text
        return "\n".join([text, *(_consequence(self._position, action) for action in _ACTIONS)])


def _cell(position: Cell) -> str:
    return _LAKE[position[0]][position[1]]


def _neighbour(position: Cell, action: str) -> Cell:
    row, column = position[0] + _MOVES[action][0], position[1] + _MOVES[action][1]
    return min(max(row, 0), 3), min(max(column, 0), 3)


def _consequence(position: Cell, action: str) -> str:
    row, column = _neighbour(position, action)
    return f"{action} leads to position ({row}, {column}), {_CELLS[_cell((row, column))]}."
