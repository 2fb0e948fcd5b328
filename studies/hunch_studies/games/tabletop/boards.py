"""Games in which nothing is hidden: tic-tac-toe, and connect four on a small board."""

from __future__ import annotations

from functools import cache

from hunch_studies.games.game import END

MARKS = "xo"


class TicTacToe:
    """Three in a row on 3 x 3 cells. A state is the board as a text of 9 characters."""

    title = "tic-tac-toe"
    text = (
        "The game of tic-tac-toe. Players 0 (x) and 1 (o) move in turn, player 0 first, and mark an "
        "empty cell of a board of 3 x 3, numbered 0 to 8 row by row. Who first has three marks in a "
        "row, a column or a diagonal wins 1, and the other -1. A full board without is a draw, 0 for "
        "both. Both see the board, a text of its 9 cells with '.' for an empty one. Actions are 'mark "
        "0' to 'mark 8', in the order of the cells."
    )
    width, height, wins = 3, 3, 3

    def initial_state(self) -> str:
        """Return an empty board."""
        return "." * (self.width * self.height)

    def current_player(self, state: str) -> int:
        """Return the player with fewer marks."""
        if self._winner(state) is not None or "." not in state:
            return END
        return state.count("x") - state.count("o")

    def legal_actions(self, state: str) -> list[str]:
        """Return the empty cells."""
        return [f"mark {cell}" for cell, mark in enumerate(state) if mark == "."]

    def chance_outcomes(self, state: str) -> list[tuple[str, float]]:
        """Return nothing: there is no chance."""
        return []

    def apply_action(self, state: str, action: str) -> str:
        """Return the board with a marked cell."""
        return self._marked(state, int(action.split()[1]))

    def observation(self, state: str, player: int) -> str:
        """Return the board."""
        return state

    def returns(self, state: str) -> tuple[float, float]:
        """Return 1 for the winner, -1 for the loser."""
        winner = self._winner(state)
        return (0.0, 0.0) if winner is None else ((1.0, -1.0), (-1.0, 1.0))[winner]

    def _marked(self, state: str, cell: int) -> str:
        return state[:cell] + MARKS[self.current_player(state)] + state[cell + 1 :]

    def _winner(self, state: str) -> int | None:
        for mark in MARKS:
            if any(
                all(state[cell] == mark for cell in line)
                for line in _lines(self.width, self.height, self.wins)
            ):
                return MARKS.index(mark)
        return None


class ConnectFour(TicTacToe):
    """Four in a row on 5 columns of 4 cells, into which pieces fall."""

    title = "connect four"
    text = (
        "The game of connect four on a small board of 5 columns and 4 rows. Players 0 (x) and 1 (o) "
        "move in turn, player 0 first, and drop a piece into a column that is not full; it falls onto "
        "the lowest empty cell. Who first has four pieces in a line (row, column or diagonal) wins "
        "1, and the other -1. A full board without is a draw, 0 for both. Both see the board, a text "
        "of its 20 cells row by row from the top, with '.' for an empty one. Actions are 'drop 0' to "
        "'drop 4', in the order of the columns."
    )
    width, height, wins = 5, 4, 4

    def legal_actions(self, state: str) -> list[str]:
        """The columns that are not full."""
        return [f"drop {column}" for column in range(self.width) if state[column] == "."]

    def apply_action(self, state: str, action: str) -> str:
        """Drop a piece."""
        column = int(action.split()[1])
        row = max(row for row in range(self.height) if state[row * self.width + column] == ".")
        return self._marked(state, row * self.width + column)


@cache
def _lines(width: int, height: int, wins: int) -> list[list[int]]:
    """The cells of all lines that win."""
    ways = [
        [(row + i * down, column + i * right) for i in range(wins)]
        for row in range(height)
        for column in range(width)
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
    ]
    inside = [all(0 <= r < height and 0 <= c < width for r, c in way) for way in ways]
    return [[r * width + c for r, c in way] for way, fits in zip(ways, inside, strict=True) if fits]
