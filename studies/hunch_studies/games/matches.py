"""Matches between players of a game: side by side, from both seats, and in a tournament."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hunch.core import FloatArray, HunchError
from hunch_studies.games.game import CHANCE, END, PLAYERS, Game, View, drawn


class Seat(Protocol):
    """Plays a game in one of the seats."""

    def choose(self, views: Sequence[View]) -> list[str]:
        """Choose an action in each of several matches."""
        ...


class AtRandom:
    """Plays random actions."""

    def choose(self, views: Sequence[View]) -> list[str]:
        """Draw an action in each match."""
        return [view.actions[int(view.rng.integers(len(view.actions)))] for view in views]


def matches(game: Game, seats: tuple[Seat, Seat], n: int, seed: int) -> FloatArray:
    """Play matches side by side; return each player's return, shape (n, 2).

    The randomness of match i depends only on (seed, i), so different players can be compared in pairs.

    Raises:
        HunchError: if the game's code fails in a position.
    """
    rngs = [np.random.default_rng([seed, i]) for i in range(n)]
    own = [[np.random.default_rng([seed, i, 1 + player]) for player in PLAYERS] for i in range(n)]
    if (begun := game.begin()) is None:
        raise HunchError("This game does not begin.")
    positions = [begun] * n
    while live := [i for i in range(n) if positions[i].look.player != END]:
        actions = {i: drawn(positions[i], rngs[i]) for i in live if positions[i].look.player == CHANCE}
        for player in PLAYERS:
            mine = [i for i in live if positions[i].look.player == player]
            views = [
                View(player, positions[i].memory, positions[i].look.actions, own[i][player]) for i in mine
            ]
            actions |= zip(mine, seats[player].choose(views), strict=True)
        moved = game.follow([positions[i] for i in live], [actions[i] for i in live])
        for i, position in zip(live, moved, strict=True):
            if position is None:
                raise HunchError(f"This game has nothing to say of {(*positions[i].history, actions[i])}.")
            positions[i] = position
    return np.array([position.look.returns for position in positions])


def tournament(game: Game, seats: Sequence[Seat], n: int, seed: int) -> FloatArray:
    """Play n matches of each pair in both seats; return mean returns of each against each, shape (k, k)."""
    won = np.zeros((len(seats), len(seats)))
    for i, one in enumerate(seats):
        for j, other in enumerate(seats[:i]):
            first, second = matches(game, (one, other), n, seed), matches(game, (other, one), n, seed)
            won[i, j] = (first[:, 0] + second[:, 1]).mean() / 2
            won[j, i] = (first[:, 1] + second[:, 0]).mean() / 2
    return won
