"""``scripted:tabletop``: plays Tic-Tac-Toe, Connect Four and Nim in the words of TextArena.

It takes a win in one move, prevents one of the opponent, and otherwise moves at random; in Nim it moves so
that the sizes of the piles, combined by exclusive or, are 0. Dial: ``skill``, the share of its moves that are
such; the others are drawn from the admissible ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import xor
from typing import Final

import numpy as np

from hunch.core import UsageError
from hunch.lm.backends.sampling import sample_rng
from hunch.lm.backends.scripted import RuleWriter
from hunch.lm.rules import writer

SIZES: Final = {"Tic Tac Toe": (3, 3, 3), "Connect Four": (6, 7, 4)}
"""Rows, columns and length of a winning line of each game with a board."""
SYMBOLS: Final = {"Tic Tac Toe": "OX", "Connect Four": "XO"}
"""The symbols of the first and the second player."""
_PLAYER: Final = re.compile(r"(?:You are|Welcome to Nim,) Player (\d)")
_PILES: Final = re.compile(r"Current Pile:((?:\n\s*pile \d+: \d+)+)")
_PILE: Final = re.compile(r"pile (\d+): (\d+)")


@writer("tabletop", dials=("skill",))
class Tabletop(RuleWriter):
    """The player, with its dial.

    Raises:
        UsageError: if the dial is not from 0 to 1.
    """

    def __init__(self, skill: float = 1.0) -> None:
        if not 0 <= skill <= 1:
            raise UsageError("The dial of scripted:tabletop must be from 0 to 1.")
        self.skill, self.name, self.revision = skill, "scripted:tabletop", f"1:{skill}"

    def answer(self, prompt: str, sample: int) -> str:
        """Return a move; an empty text if the prompt shows none of the games."""
        every = moves(prompt)
        if not every:
            return ""
        rng = sample_rng(prompt, "tabletop", sample)
        chosen = best_moves(prompt) if rng.random() < self.skill else every
        return chosen[int(rng.integers(len(chosen)))]


def moves(prompt: str) -> list[str]:
    """Return the admissible moves in the present position; none if the prompt shows no such game."""
    game = _game(prompt)
    if game == "Nim":
        return [f"[{pile} {n}]" for pile, size in _piles(prompt) for n in range(1, size + 1)]
    if not game:
        return []
    board = _board(prompt, game)
    return [_named(game, place) for place in _places(board)]


def best_moves(prompt: str) -> list[str]:
    """Return the moves that the rule chooses among; none if the prompt shows no such game."""
    game = _game(prompt)
    if game == "Nim":
        return _best_in_nim(prompt)
    players = _PLAYER.findall(prompt)
    if not game or not players:
        return moves(prompt)
    board = _board(prompt, game)
    mover = int(players[-1])
    own, other = SYMBOLS[game][mover], SYMBOLS[game][1 - mover]
    places = _places(board)
    length = SIZES[game][2]
    for symbol in (own, other):  # a win of the opponent is prevented by a move to the same place
        wins = [place for place in places if _wins(board, place, symbol, length)]
        if wins:
            return [_named(game, place) for place in wins]
    return [_named(game, place) for place in places]


def _best_in_nim(prompt: str) -> list[str]:
    """Return the moves after which the exclusive or of the piles is 0, or all if there is none."""
    piles = _piles(prompt)
    total = reduce(xor, (size for _, size in piles), 0)
    winning = [f"[{pile} {size - (size ^ total)}]" for pile, size in piles if size ^ total < size]
    return winning or moves(prompt)


def _game(prompt: str) -> str:
    """Return the game of a prompt; empty if it is none of these."""
    return next((game for game in (*SIZES, "Nim") if f"{game}." in prompt or f"to {game}," in prompt), "")


def _piles(prompt: str) -> list[tuple[int, int]]:
    """Return the piles that are not empty, by number and size."""
    lists = _PILES.findall(prompt)
    present = _PILE.findall(lists[-1]) if lists else []
    return [(int(pile), int(size)) for pile, size in present if int(size)]


def _board(prompt: str, game: str) -> list[list[str]]:
    """Return the last whole board, row by row: a symbol, or an empty text; empty without a board."""
    rows, columns, _ = SIZES[game]
    heading = "Board state:" if game == "Connect Four" else "Current Board:"
    pattern = r"[XO.]" if game == "Connect Four" else r"[XO\d]"
    for text in reversed(prompt.split(heading)[1:]):  # a refused move may have such a heading, too
        lines = [re.findall(rf"(?<!\S){pattern}(?!\S)", line) for line in text.splitlines()]
        cells = [[cell if cell in "XO" else "" for cell in line] for line in lines if len(line) == columns]
        if len(cells) >= rows:
            return cells[:rows]
    return []


def _places(board: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """Return the empty cells that may be taken: in Connect Four the lowest of each column."""
    empty = [(row, column) for row, line in enumerate(board) for column, cell in enumerate(line) if not cell]
    if len(board) == SIZES["Tic Tac Toe"][0]:
        return empty
    return sorted({column: (row, column) for row, column in empty}.values(), key=lambda place: place[1])


def _named(game: str, place: tuple[int, int]) -> str:
    row, column = place
    return f"[col {column}]" if game == "Connect Four" else f"[{row * SIZES[game][1] + column}]"


def _wins(board: Sequence[Sequence[str]], place: tuple[int, int], symbol: str, length: int) -> bool:
    """Return whether a symbol at a place makes a line of the given length."""
    cells = np.array([[cell == symbol for cell in line] for line in board])
    cells[place] = True
    for step in ((0, 1), (1, 0), (1, 1), (1, -1)):
        run = 1
        for sign in (1, -1):
            row, column = place[0] + sign * step[0], place[1] + sign * step[1]
            while 0 <= row < cells.shape[0] and 0 <= column < cells.shape[1] and cells[row, column]:
                run += 1
                row, column = row + sign * step[0], column + sign * step[1]
        if run >= length:
            return True
    return False
