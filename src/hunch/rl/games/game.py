"""What a game is: rules as functions of a state, positions with what each player remembers, matches.

Rules are the functions of OpenSpiel (Lanctot et al. 2019): a state is plain values that only the rules read.
Players see observations. A player's *memory* is all that it saw and did, one entry per move of anybody; two
positions of the same memory are the same to it, which makes memories its information sets (perfect recall).
Searches ask a :class:`Game` for positions, so that they run on true rules and on code that a model wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from hunch.core import FloatArray, HunchError
from hunch.rl.world_model import frozen

CHANCE, END = -1, -4
"""Who moves where no player does: chance, or nobody as the game is over (OpenSpiel's numbers)."""
PLAYERS = (0, 1)

Memory: TypeAlias = tuple[tuple[str | None, Any], ...]
"""Of each move, the player's own action (None for another's) and what it saw after it; begins before any."""


class Rules(Protocol):
    """A game of two players."""

    def initial_state(self) -> Any:
        """The state before the first move."""
        ...

    def current_player(self, state: Any) -> int:
        """Who moves: 0 or 1, :data:`CHANCE` or :data:`END`."""
        ...

    def legal_actions(self, state: Any) -> Sequence[str]:
        """What the player who moves may do."""
        ...

    def chance_outcomes(self, state: Any) -> Sequence[tuple[str, float]]:
        """What chance may do, with probabilities that sum to 1."""
        ...

    def apply_action(self, state: Any, action: str) -> Any:
        """The state after a move."""
        ...

    def observation(self, state: Any, player: int) -> Any:
        """What a player sees."""
        ...

    def returns(self, state: Any) -> tuple[float, float]:
        """What each player has won at the end."""
        ...


class Look(NamedTuple):
    """All that rules say of a state.

    Attributes:
        player: Who moves.
        actions: What may be done, by a player or by chance; none at the end.
        chances: Probability of each, where chance moves.
        seen: What each player sees.
        returns: What each player has won; 0 before the end.
    """

    player: int
    actions: tuple[str, ...]
    chances: tuple[float, ...]
    seen: tuple[Any, Any]
    returns: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Position:
    """A state of a game with how it came about.

    Attributes:
        look: What the rules say of it.
        memories: Of each player.
        history: All moves so far.
        state: The rules' own state.
    """

    look: Look
    memories: tuple[Memory, Memory]
    history: tuple[str, ...]
    state: Any

    @property
    def memory(self) -> Memory:
        """That of the player who moves."""
        return self.memories[self.look.player]

    @classmethod
    def first(cls, state: Any, look: Look) -> Position:
        """The position before the first move."""
        one, other = look.seen
        return cls(look, (((None, one),), ((None, other),)), (), state)

    def after(self, action: str, state: Any, look: Look) -> Position:
        """The position after a move, which the one who made it remembers."""
        one, other = (
            (*self.memories[player], (action if self.look.player == player else None, look.seen[player]))
            for player in PLAYERS
        )
        return Position(look, (one, other), (*self.history, action), state)


class Game(Protocol):
    """A game that can be asked for positions. It has nothing to say, ``None``, where its code fails."""

    def begin(self) -> Position | None:
        """The first position."""
        ...

    def follow(self, positions: Sequence[Position], actions: Sequence[str]) -> Sequence[Position | None]:
        """The positions that moves lead to, all together."""
        ...


class Known:
    """A game by its rules.

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
        """The positions that moves lead to."""
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
    """A move of chance."""
    chances = np.cumsum(position.look.chances)
    place = int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
    return position.look.actions[min(place, len(chances) - 1)]


def at_random(position: Position, rng: np.random.Generator) -> str:
    """A move of chance, or a player's that is as likely as any other."""
    actions = position.look.actions
    return (
        drawn(position, rng) if position.look.player == CHANCE else actions[int(rng.integers(len(actions)))]
    )


# ---- matches ----------------------------------------------------------------------------------------------


class View(NamedTuple):
    """What a player knows as it moves: which one it is, its memory, what it may do, and its chance."""

    player: int
    memory: Memory
    actions: tuple[str, ...]
    rng: np.random.Generator


class Seat(Protocol):
    """Whoever plays a game."""

    def choose(self, views: Sequence[View]) -> list[str]:
        """Choose an action in each of some matches, all together."""
        ...


class AtRandom:
    """Plays any action."""

    def choose(self, views: Sequence[View]) -> list[str]:
        """Draw one for each."""
        return [view.actions[int(view.rng.integers(len(view.actions)))] for view in views]


def matches(game: Game, seats: tuple[Seat, Seat], n: int, seed: int) -> FloatArray:
    """Play matches side by side; returns what each player won, shape (n, 2).

    Match i draws its chance from (seed, i), the same for any two seats: they can be compared in pairs.

    Raises:
        HunchError: if the game is code that has nothing to say of a position.
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
    """Each against each other, n matches in both seats; what each wins of each on average, shape (k, k)."""
    won = np.zeros((len(seats), len(seats)))
    for i, one in enumerate(seats):
        for j, other in enumerate(seats[:i]):
            first, second = matches(game, (one, other), n, seed), matches(game, (other, one), n, seed)
            won[i, j] = (first[:, 0] + second[:, 1]).mean() / 2
            won[j, i] = (first[:, 1] + second[:, 0]).mean() / 2
    return won
