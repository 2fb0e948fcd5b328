"""Games: rules as functions of a state, positions with each player's memory, and matches.

Rules have the functions of OpenSpiel (Lanctot et al. 2019). A state consists of plain values that only the
rules read; players see observations. A player's *memory* is everything that it saw and did, with one entry
per move of any player. A player cannot distinguish positions with the same memory, so memories are its
information sets (perfect recall). Searches ask a :class:`Game` for positions, so they work with true rules
and with code that a model wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from hunch.rl.world_model import frozen

CHANCE, END = -1, -4
"""The mover if no player moves: chance, or nobody because the game is over (OpenSpiel's numbers)."""
PLAYERS = (0, 1)

Memory: TypeAlias = tuple[tuple[str | None, Any], ...]
"""The player's own action (None for another's) and what it saw after it, for the start and for each move."""


class Rules(Protocol):
    """The rules of a two-player game."""

    def initial_state(self) -> Any:
        """Return the state before the first move."""
        ...

    def current_player(self, state: Any) -> int:
        """Return who moves: 0 or 1, :data:`CHANCE` or :data:`END`."""
        ...

    def legal_actions(self, state: Any) -> Sequence[str]:
        """Return the legal actions of the player to move."""
        ...

    def chance_outcomes(self, state: Any) -> Sequence[tuple[str, float]]:
        """Return the outcomes of chance with their probabilities, which sum to 1."""
        ...

    def apply_action(self, state: Any, action: str) -> Any:
        """Return the state after a move."""
        ...

    def observation(self, state: Any, player: int) -> Any:
        """Return what a player sees."""
        ...

    def returns(self, state: Any) -> tuple[float, float]:
        """Return the players' returns at the end."""
        ...


class Look(NamedTuple):
    """Everything that rules say about a state.

    Attributes:
        player: The player to move, or chance, or the end.
        actions: The legal actions, or the outcomes of chance; none at the end.
        chances: Probability of each outcome, if chance moves.
        seen: Each player's observation.
        returns: Each player's return; 0 before the end.
    """

    player: int
    actions: tuple[str, ...]
    chances: tuple[float, ...]
    seen: tuple[Any, Any]
    returns: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Position:
    """A state of a game with its history.

    Attributes:
        look: What the rules say about it.
        memories: Each player's memory.
        history: All moves so far.
        state: The state itself, which only the rules read.
    """

    look: Look
    memories: tuple[Memory, Memory]
    history: tuple[str, ...]
    state: Any

    @property
    def memory(self) -> Memory:
        """The memory of the player to move."""
        return self.memories[self.look.player]

    @classmethod
    def first(cls, state: Any, look: Look) -> Position:
        """Return the position before the first move."""
        one, other = look.seen
        return cls(look, (((None, one),), ((None, other),)), (), state)

    def after(self, action: str, state: Any, look: Look) -> Position:
        """Return the position after a move, which only its player remembers as an action."""
        one, other = (
            (*self.memories[player], (action if self.look.player == player else None, look.seen[player]))
            for player in PLAYERS
        )
        return Position(look, (one, other), (*self.history, action), state)


class Game(Protocol):
    """A game that returns positions; ``None`` if its code fails."""

    def begin(self) -> Position | None:
        """The first position."""
        ...

    def follow(self, positions: Sequence[Position], actions: Sequence[str]) -> Sequence[Position | None]:
        """Return the positions after several moves."""
        ...


class Known:
    """A game with true rules.

    Args:
        rules: The rules.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def begin(self) -> Position:
        """The first position."""
        state = self.rules.initial_state()
        return Position.first(state, self._look(state))

    def follow(self, positions: Sequence[Position], actions: Sequence[str]) -> list[Position]:
        """Return the positions after several moves."""
        return [self._after(*move) for move in zip(positions, actions, strict=True)]

    def _after(self, position: Position, action: str) -> Position:
        state = self.rules.apply_action(position.state, action)
        return position.after(action, state, self._look(state))

    def _look(self, state: Any) -> Look:
        rules, player = self.rules, self.rules.current_player(state)
        seen = frozen(rules.observation(state, 0)), frozen(rules.observation(state, 1))
        if player == END:
            return Look(player, (), (), seen, rules.returns(state))
        if player != CHANCE:
            return Look(player, tuple(rules.legal_actions(state)), (), seen)
        actions, chances = zip(*rules.chance_outcomes(state), strict=True)
        return Look(player, actions, chances, seen)


def drawn(position: Position, rng: np.random.Generator) -> str:
    """Draw an outcome of chance."""
    chances = np.cumsum(position.look.chances)
    place = int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
    return position.look.actions[min(place, len(chances) - 1)]


def at_random(position: Position, rng: np.random.Generator) -> str:
    """Draw an outcome of chance, or a player's action with equal probabilities."""
    actions = position.look.actions
    return (
        drawn(position, rng) if position.look.player == CHANCE else actions[int(rng.integers(len(actions)))]
    )


class View(NamedTuple):
    """What a player knows when it moves: its number, memory and legal actions, and a random generator."""

    player: int
    memory: Memory
    actions: tuple[str, ...]
    rng: np.random.Generator
