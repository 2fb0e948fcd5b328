"""The games by name."""

from __future__ import annotations

from typing import Literal, Protocol

from hunch_studies.games.game import Rules
from hunch_studies.games.tabletop.boards import ConnectFour, TicTacToe
from hunch_studies.games.tabletop.cards import Kuhn, Leduc
from hunch_studies.games.tabletop.squall import Squall


class Told(Rules, Protocol):
    """Rules with a description in words."""

    title: str
    text: str


Name = Literal["tic-tac-toe", "connect-four", "kuhn", "leduc", "squall"]
GAMES: dict[Name, Told] = {
    "tic-tac-toe": TicTacToe(),
    "connect-four": ConnectFour(),
    "kuhn": Kuhn(),
    "leduc": Leduc(),
    "squall": Squall(),
}
"""True rules by name."""
