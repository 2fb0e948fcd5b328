"""The games by name."""

from __future__ import annotations

from typing import Literal, Protocol

from hunch.envs.tabletop.boards import ConnectFour, TicTacToe
from hunch.envs.tabletop.cards import Kuhn, Leduc
from hunch.envs.tabletop.squall import Squall
from hunch.rl.games.game import Rules


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
