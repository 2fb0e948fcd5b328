"""Counterfactual regret minimisation and exploitability, for small games that can be enumerated.

    repeat
        policy of each information set: in proportion to the positive regrets of its actions
        regret of an action: its value minus the policy's value, weighted by the probability that the other
            player and chance allow the information set to be reached; never below 0
    the result is the mean policy, in which later policies count more

Source: Zinkevich et al., "Regret Minimization in Games with Incomplete Information", 2007; non-negative
regrets and growing weights are CFR+ (Tammelin 2014). A game is first enumerated and stored as arrays with one
node per history, ordered by levels, so that a sweep up or down is a few sums per level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hunch.core import FloatArray, IntArray, UsageError
from hunch_studies.games.game import CHANCE, END, PLAYERS, Game, Memory, Position

Policy: TypeAlias = Mapping[tuple[int, Memory], Mapping[str, float]]
"""Probability of each action, by player and memory."""


@dataclass(frozen=True)
class Tree:
    """An enumerated game: N histories by level, M information sets, at most A actions in each.

    Attributes:
        keys: Player and memory of each information set.
        actions: Actions of each information set.
        levels: First and last index of the histories of each level (number of moves).
        parent: Index of the history before the last move, shape (N,); the first history is its own parent.
        player: The player to move, shape (N,).
        place: Index of the information set of the player to move, shape (N,); -1 if no player moves.
        slot: Index of the player's action that led here, shape (N,); 0 after a move of chance.
        chance: Probability of the move of chance that led here, shape (N,); 1 after a player's move.
        won: Returns of the players, shape (N, 2); 0 before the end.
    """

    keys: list[tuple[int, Memory]]
    actions: list[tuple[str, ...]]
    levels: list[tuple[int, int]]
    parent: IntArray
    player: IntArray
    place: IntArray
    slot: IntArray
    chance: FloatArray
    won: FloatArray

    @property
    def there(self) -> FloatArray:
        """1 for each action that an information set has, else 0; shape (M, A)."""
        widths = np.array([len(own) for own in self.actions])
        return (np.arange(widths.max(initial=1)) < widths[:, None]).astype(float)

    @property
    def mover(self) -> IntArray:
        """The player who moved last, shape (N,)."""
        return self.player[self.parent]


def tree_of(game: Game, most: int = 200_000) -> Tree:
    """Enumerate a game.

    Raises:
        UsageError: if it has more than ``most`` histories or none, or its code fails in a position.
    """
    if (first := game.begin()) is None:
        raise UsageError("The game has no first position.")
    positions: list[Position] = [first]
    parent, slot, chance, levels = [0], [0], [1.0], [(0, 1)]
    while levels[-1][0] < levels[-1][1]:
        moves = [(i, a) for i in range(*levels[-1]) for a in range(len(positions[i].look.actions))]
        found = game.follow(
            [positions[i] for i, _ in moves], [positions[i].look.actions[a] for i, a in moves]
        )
        for (i, a), position in zip(moves, found, strict=True):
            if position is None:
                raise UsageError(f"The game's code fails after the moves {positions[i].history}.")
            positions.append(position)
            parent.append(i)
            by_chance = positions[i].look.player == CHANCE
            slot.append(0 if by_chance else a)
            chance.append(positions[i].look.chances[a] if by_chance else 1.0)
        levels.append((levels[-1][1], len(positions)))
        if len(positions) > most:
            raise UsageError(f"The game has more than {most:,} histories.")
    keys: dict[tuple[int, Memory], int] = {}
    own: list[tuple[str, ...]] = []
    place = np.full(len(positions), -1)
    for n, position in enumerate(positions):
        if position.look.player in PLAYERS:
            key = position.look.player, position.memory
            if key not in keys:
                keys[key] = len(keys)
                own.append(position.look.actions)
            place[n] = keys[key]
    won = np.array([p.look.returns if p.look.player == END else (0.0, 0.0) for p in positions])
    player = np.array([position.look.player for position in positions])
    return Tree(
        list(keys), own, levels[:-1], np.array(parent), player, place, np.array(slot), np.array(chance), won
    )


def solve(tree: Tree, iterations: int = 1_000) -> Policy:
    """Return the mean policy of counterfactual regret minimisation."""
    regrets, mean = np.zeros_like(tree.there), np.zeros_like(tree.there)
    for t in range(1, iterations + 1):
        for player in PLAYERS:  # alternately, each against the other's updated policy
            strategy = matched(regrets, tree)
            reach, values = reaches(tree, strategy), worth(tree, strategy)
            moved = np.flatnonzero((tree.mover == player) & (np.arange(len(tree.parent)) > 0))
            at = tree.place[tree.parent[moved]], tree.slot[moved]
            gain = values[moved, player] - values[tree.parent[moved], player]
            others = np.delete(reach[tree.parent[moved]], player, axis=1).prod(axis=1)
            np.add.at(regrets, at, others * gain)
            np.maximum(regrets, 0, out=regrets)
            np.add.at(mean, at, t * reach[tree.parent[moved], player] * strategy[at])
    return as_policy(tree, mean)


def matched(weights: FloatArray, tree: Tree) -> FloatArray:
    """Return probabilities in proportion to weights, shape (M, A); uniform if all weights are 0."""
    total = weights.sum(axis=1, keepdims=True)
    even = tree.there / tree.there.sum(axis=1, keepdims=True)
    return np.where(total > 0, weights / np.where(total > 0, total, 1), even)


def as_policy(tree: Tree, weights: FloatArray) -> Policy:
    """Turn weights of actions, shape (M, A), into a policy."""
    return {
        key: dict(zip(own, map(float, row), strict=False))
        for key, own, row in zip(tree.keys, tree.actions, matched(weights, tree), strict=True)
    }


def in_tree(tree: Tree, policy: Policy) -> FloatArray:
    """Return a policy's probabilities, shape (M, A); uniform where the policy is undefined."""
    weights = np.zeros_like(tree.there)
    for i, (key, own) in enumerate(zip(tree.keys, tree.actions, strict=True)):
        said = policy.get(key, {})
        weights[i, : len(own)] = [said.get(action, 0.0) for action in own]
    return matched(weights, tree)


def reaches(tree: Tree, strategy: FloatArray) -> FloatArray:
    """Return the contributions of player 0, player 1 and chance to the probability of each history (N, 3)."""
    reach = np.ones((len(tree.parent), 3))
    for begin, end in tree.levels[1:]:
        nodes = slice(begin, end)
        above, mover = tree.parent[nodes], tree.mover[nodes]
        share = np.where(mover == CHANCE, tree.chance[nodes], strategy[tree.place[above], tree.slot[nodes]])
        reach[nodes] = reach[above]
        reach[np.arange(begin, end), np.where(mover == CHANCE, 2, mover)] *= share
    return reach


def worth(tree: Tree, strategy: FloatArray) -> FloatArray:
    """Return each player's expected return from each history, shape (N, 2)."""
    values = tree.won.copy()
    for begin, end in reversed(tree.levels[1:]):
        nodes = slice(begin, end)
        above = tree.parent[nodes]
        share = np.where(
            tree.mover[nodes] == CHANCE, tree.chance[nodes], strategy[tree.place[above], tree.slot[nodes]]
        )
        np.add.at(values, above, share[:, None] * values[nodes])
    return values


def value(tree: Tree, policy: Policy) -> float:
    """Return the expected return of player 0 if both play a policy."""
    return float(worth(tree, in_tree(tree, policy))[0, 0])


def best_response(tree: Tree, policy: Policy, player: int) -> float:
    """Return the expected return of a player's best response to the other's policy."""
    strategy = in_tree(tree, policy)
    reach = reaches(tree, strategy)
    others = np.delete(reach, player, axis=1).prod(axis=1)
    values = tree.won[:, player] * others  # weighted by the others' probability of each history
    for begin, end in reversed(tree.levels[1:]):
        nodes = np.arange(begin, end)
        own = nodes[tree.mover[nodes] == player]
        gains = np.zeros_like(tree.there)
        np.add.at(gains, (tree.place[tree.parent[own]], tree.slot[own]), values[own])
        best = np.where(tree.there > 0, gains, -np.inf).argmax(axis=1)
        taken = tree.slot[nodes] == best[tree.place[tree.parent[nodes]]]
        kept = nodes[(tree.mover[nodes] != player) | taken]
        np.add.at(values, tree.parent[kept], values[kept])
    return float(values[0])


def exploitability(tree: Tree, policy: Policy) -> float:
    """Return the mean return of best responses against a policy; 0 at an equilibrium.

    For zero-sum games; this is half of OpenSpiel's NashConv.
    """
    return sum(best_response(tree, policy, player) for player in PLAYERS) / 2
