"""Inference about hidden information: draws positions that are consistent with a player's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hunch.core import UsageError
from hunch.rl.world_model import alike
from hunch_studies.games.game import CHANCE, Game, Memory, Position, View


class Inference(Protocol):
    """Draws positions that are consistent with what a player knows."""

    def resample(self, views: Sequence[View], n: int) -> list[list[Position]]:
        """Draw n positions for each view; fewer or none if they cannot be found."""
        ...


def same(memory: Memory, other: Memory) -> bool:
    """Return whether two memories are equal, with a tolerance for numbers."""
    return len(memory) == len(other) and all(
        a == b and alike(seen, shown) for (a, seen), (b, shown) in zip(memory, other, strict=True)
    )


@dataclass(frozen=True)
class Belief:
    """A probability distribution over the positions that are consistent with a memory.

    Attributes:
        positions: The positions.
        weights: Probability of each position.
    """

    positions: list[Position]
    weights: list[float]


class Filtering:
    """Exact inference that follows all possible histories move by move, for games with little hidden.

    Chance moves have the game's probabilities; the other player's moves are taken to be uniform.

    Args:
        game: The game, with true rules or with code that a model wrote.
        most: Maximum number of positions that may be consistent with a memory.
    """

    def __init__(self, game: Game, most: int = 20_000) -> None:
        self.game, self.most = game, most
        self.known: dict[tuple[int, Memory], Belief] = {}

    def resample(self, views: Sequence[View], n: int) -> list[list[Position]]:
        """Draw from the belief of each view."""
        return [self._drawn(view, n) for view in views]

    def _drawn(self, view: View, n: int) -> list[Position]:
        belief = self.belief(view.player, view.memory)
        places = view.rng.choice(len(belief.positions), n, p=belief.weights) if belief.positions else ()
        return [belief.positions[int(place)] for place in places]

    def belief(self, player: int, memory: Memory) -> Belief:
        """Return the positions that are consistent with a memory.

        Raises:
            UsageError: if there are more than ``most``.
        """
        key = player, memory
        if key not in self.known:
            before = self._first(player, memory) if len(memory) == 1 else self.belief(player, memory[:-1])
            self.known[key] = before if len(memory) == 1 else self._next(before, player, memory)
        return self.known[key]

    def _first(self, player: int, memory: Memory) -> Belief:
        position = self.game.begin()
        fits = position is not None and same(position.memories[player], memory)
        return Belief([position], [1.0]) if position is not None and fits else Belief([], [])

    def _next(self, before: Belief, player: int, memory: Memory) -> Belief:
        own, _ = memory[-1]
        moves = [
            (position, action, weight * share)
            for position, weight in zip(before.positions, before.weights, strict=True)
            for action, share in _shares(position)
            if (action == own if position.look.player == player else own is None)
        ]
        found = self.game.follow([move[0] for move in moves], [move[1] for move in moves])
        kept = [
            (after, weight)
            for after, (_, _, weight) in zip(found, moves, strict=True)
            if after is not None and weight > 0 and same(after.memories[player][-1:], memory[-1:])
        ]
        if len(kept) > self.most:
            raise UsageError(f"More than {self.most:,} positions are consistent with what this player saw.")
        total = sum(weight for _, weight in kept)
        return Belief([position for position, _ in kept], [weight / total for _, weight in kept])


def _shares(position: Position) -> list[tuple[str, float]]:
    """Return the moves of a position with their assumed probabilities."""
    look = position.look
    if look.player == CHANCE:
        return list(zip(look.actions, look.chances, strict=True))
    return [(action, 1 / len(look.actions)) for action in look.actions]
