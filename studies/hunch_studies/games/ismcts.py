"""Information-set Monte Carlo tree search, for games with hidden information.

    repeat for the number of simulations
        draw a position that is consistent with the player's memory
        descend from it by the upper confidence bound, each player in the nodes of its own memories
        at a new node: add it, and continue at random, or ask a value function
        add each player's return to its actions on the path

Statistics belong to memories, so a player never uses hidden information, although the drawn position contains
it. Without hidden information this is UCT. Sources: Cowling, Powley and Whitehouse, "Information Set Monte
Carlo Tree Search", 2012 (multiple-observer trees); c as in OpenSpiel's bots.

It does not converge to an equilibrium, because the drawn positions do not depend on the others' strategies.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hunch.core import FloatArray
from hunch.ranges import NonNegativeFloat, PositiveInt
from hunch.rl.evaluator import largest, uct
from hunch.rl.search import together
from hunch_studies.games.game import CHANCE, END, Game, Memory, Position, View, at_random
from hunch_studies.games.inference import Inference


@dataclass(slots=True)
class Node:
    """The statistics of a memory: how often each action was tried, and the sum of its returns."""

    visits: dict[str, int] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)

    def choose(self, actions: Sequence[str], c: float, rng: np.random.Generator) -> str:
        """Return the action with the highest upper confidence bound."""
        n = sum(self.visits.get(action, 0) for action in actions)
        tried = [(action, self.visits.get(action, 0)) for action in actions]
        return actions[largest([uct(self.totals.get(a, 0.0) / max(k, 1), k, n, c) for a, k in tried], rng)]

    def add(self, action: str, value: float) -> None:
        """Record the return of an action."""
        self.visits[action] = self.visits.get(action, 0) + 1
        self.totals[action] = self.totals.get(action, 0.0) + value

    def shares(self, actions: Sequence[str]) -> FloatArray:
        """Return how often each action was tried, as shares, shape (number of actions,)."""
        counts = np.array([self.visits.get(action, 0) for action in actions], dtype=float)
        return counts / counts.sum() if counts.sum() else np.full(len(actions), 1 / len(actions))


@dataclass(frozen=True, kw_only=True)
class ISMCTS:
    """The search.

    Args:
        simulations: Number of simulations.
        worlds: Number of positions drawn for a search; each simulation starts from one of them.
        c: Weight of the uncertainty term, in units of the return.
        depth: Maximum number of moves per simulation; one that does not end counts 0.
        value: Expected returns of both players from positions, instead of random play; None for a position
            counts 0.
    """

    simulations: PositiveInt = 200
    worlds: PositiveInt = 32
    c: NonNegativeFloat = 2.0
    depth: PositiveInt = 200
    value: Callable[[Sequence[Position]], Sequence[tuple[float, float] | None]] | None = None

    def search(
        self, game: Game, starts: Sequence[Sequence[Position]], rngs: Sequence[np.random.Generator]
    ) -> list[Node]:
        """Grow a tree for each set of positions, side by side; return the roots of the players to move."""
        plans = [self.plan(own, rng) for own, rng in zip(starts, rngs, strict=True)]
        return together(partial(self._answers, game), plans)

    def _answers(
        self, game: Game, wanted: Sequence[tuple[Position, str | None]]
    ) -> list[Position | tuple[float, float] | None]:
        """Return the positions after moves; for a query without a move, both players' expected returns."""
        moves = [(position, action) for position, action in wanted if action is not None]
        still = [position for position, action in wanted if action is None]
        after = iter(game.follow(*zip(*moves, strict=True)) if moves else ())
        worth = iter(self.value(still) if self.value and still else ())
        return [next(worth) if action is None else next(after) for _, action in wanted]

    def plan(
        self, starts: Sequence[Position], rng: np.random.Generator
    ) -> Generator[tuple[Position, str | None], Any, Node]:
        """Grow one tree; all positions have the same memory of the player to move."""
        tree: dict[tuple[int, Memory], Node] = {}
        for _ in range(self.simulations):
            position: Position | None = starts[int(rng.integers(len(starts)))]
            way: list[tuple[Node, int, str]] = []
            going, won = True, (0.0, 0.0)
            for _ in range(self.depth):
                if position is None or position.look.player == END:
                    won = position.look.returns if position is not None else won
                    break
                if self.value and not going and position.look.player != CHANCE:
                    won = (yield position, None) or won
                    break
                if position.look.player == CHANCE or not going:
                    action = at_random(position, rng)
                else:
                    key = position.look.player, position.memory
                    going = key in tree
                    node = tree.setdefault(key, Node())
                    action = node.choose(position.look.actions, self.c, rng)
                    way.append((node, position.look.player, action))
                position = yield position, action
            for node, player, action in way:
                node.add(action, won[player])
        return tree[starts[0].look.player, starts[0].memory]


class Searching:
    """Plays by this search, in a game with true rules or with code that a model wrote.

    It plays at random if inference finds no position, or the game offers no admissible action.

    Args:
        game: The game to search in.
        inference: How hidden information is guessed.
        search: The search.
        mixed: Draw actions in proportion to the search's counts, instead of playing the most frequent one.

    Attributes:
        asked: Number of decisions so far.
        lost: Number of decisions without a position or an admissible action.
    """

    def __init__(
        self, game: Game, inference: Inference, search: ISMCTS | None = None, *, mixed: bool = False
    ) -> None:
        self.game, self.inference = game, inference
        self.search, self.mixed = search or ISMCTS(), mixed
        self.asked = self.lost = 0

    def choose(self, views: Sequence[View]) -> list[str]:
        """Choose actions by searching for all views together."""
        chances = [
            shares if self.mixed else (shares == shares.max()) / (shares == shares.max()).sum()
            for shares in self.shares(views)
        ]
        return [
            view.actions[int(view.rng.choice(len(p), p=p))] for view, p in zip(views, chances, strict=True)
        ]

    def shares(self, views: Sequence[View]) -> list[FloatArray]:
        """Return how often the search tried each action of each view, as shares."""
        starts = [
            [
                position
                for position in drawn
                if position.look.player == view.player and position.memory == view.memory
            ]
            for view, drawn in zip(views, self.inference.resample(views, self.search.worlds), strict=True)
        ]
        known = [i for i, own in enumerate(starts) if own]
        nodes = self.search.search(self.game, [starts[i] for i in known], [views[i].rng for i in known])
        found = [Node() for _ in views]
        for i, node in zip(known, nodes, strict=True):
            found[i] = node
        self.asked += len(views)
        self.lost += sum(
            not any(node.visits.get(action) for action in view.actions)
            for node, view in zip(found, views, strict=True)
        )
        return [node.shares(view.actions) for node, view in zip(found, views, strict=True)]
