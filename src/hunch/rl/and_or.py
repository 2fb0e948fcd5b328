"""AND-OR search: a goal is proved if all subgoals of one of its moves are proved.

    repeat until every tree is proved, refuted, or has used its budget
        in each tree: from the root, at each goal choose the best move, and descend into all its open subgoals
        for the leaves of all trees together: ask for their moves, then for their priors and values
        a goal is proved by a move whose subgoals are all proved, and refuted if no move is left
        add gamma times the combined values of the subgoals to each move on the path

The paths of one descent form a tree (a hyperpath), whose leaves are expanded together. Moves are
selected by PUCT. Two controls select differently: ``breadth`` expands goals in the order of their depth, and
``best`` in the order of the product of the priors above them; neither uses values.

Trees do not share goals. A subgoal that is one of the goals above it cannot belong to a proof, so its move is
refuted. Hence an inner goal that is refuted may be provable elsewhere, but not for the root of this tree. A
refuted root has no proof.

Sources: Lample et al., "HyperTree Proof Search for Neural Theorem Proving", 2022 (hyperpaths, product);
Hubert et al., "Olympiad-level formal mathematical reasoning with reinforcement learning", 2025 (minimum);
Polu and Sutskever, "Generative Language Modeling for Automated Theorem Proving", 2020 (best first).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from math import inf, log, prod
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from hunch.core import UsageError
from hunch.ranges import NonNegativeFloat, PositiveInt, Share, check_settings
from hunch.rl.evaluator import Evaluator, evaluated, largest, puct

Moves: TypeAlias = Callable[[Sequence[Any]], Sequence[Sequence[tuple[Any, Sequence[Any]]]]]
"""Returns the moves of several goals: actions, each with its remaining subgoals."""


class Proof(NamedTuple):
    """The part of a tree that proves a goal: the action, and the proofs of its subgoals, in their order."""

    goal: Any
    action: Any
    parts: tuple[Proof, ...]
    size: int

    @classmethod
    def by(cls, move: Move) -> Proof | None:
        """Return the proof by a move; None if a subgoal is not proved."""
        parts = tuple(goal.proof for goal in move.subgoals if goal.proof is not None)
        if len(parts) < len(move.subgoals):
            return None
        return cls(move.goal.state, move.action, parts, 1 + sum(part.size for part in parts))


@dataclass(slots=True, eq=False)
class Move:
    """An action at a goal, and its subgoals, which must all hold.

    Attributes:
        goal: The goal.
        action: The action.
        subgoals: The subgoals, in their order.
        refuted: True if a subgoal is refuted, or is one of the goals above.
        visits: Number of descents through the move.
        total: Sum of the values of these descents.
        pending: Number of descents that have no value yet.
    """

    goal: Goal
    action: Any
    subgoals: list[Goal] = field(default_factory=list)
    refuted: bool = False
    visits: int = 0
    total: float = 0.0
    pending: int = 0

    @property
    def value(self) -> float:
        """Mean value of the descents; without descents, the value of the goal."""
        return self.total / self.visits if self.visits else self.goal.value


@dataclass(slots=True, eq=False)
class Goal:
    """A goal of a tree.

    Attributes:
        state: What is to be proved; hashable.
        move: The move whose subgoal this is; None at the root.
        moves: The goal's moves; None before the goal is expanded.
        prior: The evaluator's priors of the moves.
        value: The evaluator's value of the goal.
        cost: Number by which the controls order goals, smallest first.
        proof: The smallest proof when the goal was proved; None until then.
        refuted: True if the goal has no proof below the goals above it.
    """

    state: Any
    move: Move | None = None
    moves: list[Move] | None = None
    prior: Sequence[float] = ()
    value: float = 0.0
    cost: float = 0.0
    proof: Proof | None = None
    refuted: bool = False

    @property
    def open(self) -> bool:
        """True if the goal is neither proved nor refuted."""
        return self.proof is None and not self.refuted

    @property
    def above(self) -> Iterator[Goal]:
        """Yield this goal, and the goals above it up to the root."""
        goal: Goal | None = self
        while goal is not None:
            yield goal
            goal = goal.move.goal if goal.move else None

    @property
    def wanted(self) -> bool:
        """True if a proof of this goal may still become part of a proof of the root."""
        return all(goal.open and not (goal.move and goal.move.refuted) for goal in self.above)

    def expand(self, moves: Sequence[tuple[Any, Sequence[Any]]]) -> None:
        """Add the moves, given as actions with subgoals."""
        above = {goal.state for goal in self.above}
        self.moves = []
        for action, parts in moves:
            move = Move(self, action, refuted=not above.isdisjoint(parts))
            move.subgoals = [Goal(part, move) for part in parts]
            self.moves.append(move)
        self._settle()

    def _settle(self) -> None:
        """Find out whether this goal is proved or refuted, and then the goals above it."""
        for goal in self.above:
            if not goal.open or goal.moves is None:
                return
            proofs = [Proof.by(move) for move in goal.moves]
            complete = [proof for proof in proofs if proof is not None]
            goal.proof = min(complete, key=lambda proof: proof.size, default=None)
            goal.refuted = all(move.refuted for move in goal.moves)
            if goal.open:
                return
            if goal.refuted and goal.move:
                goal.move.refuted = True


Hyperpath: TypeAlias = list[Move]
"""Moves of one descent, each before those of its subgoals."""


@dataclass(slots=True, eq=False)
class Tree:
    """The search for a proof of one goal.

    Attributes:
        root: The goal to prove.
        rng: Random generator that breaks ties.
        expansions: Number of goals expanded so far.
        hyperpaths: Those of this round.
        queue: Goals in the order of the controls, with costs.
        number: Counter of the goals in the queue, which breaks ties.
    """

    root: Goal
    rng: np.random.Generator
    expansions: int = 0
    hyperpaths: list[Hyperpath] = field(default_factory=list)
    queue: list[tuple[float, int, Goal]] = field(default_factory=list)
    number: Iterator[int] = field(default_factory=count)


@dataclass(frozen=True, kw_only=True)
class AndOr:
    """Settings of the search, and the search itself.

    Args:
        budget: Maximum number of expansions per tree.
        rule: How goals are selected: ``puct``, ``breadth`` or ``best``.
        combine: The value of several subgoals that must all hold: their product or their minimum. A proved
            subgoal has the value 1.
        c: Weight of the exploration term of PUCT.
        gamma: Discount per move: a move is worth gamma times its combined subgoals, of which a proved one
            counts 1, however long its proof.
        leaves: Number of descents per round (``puct``), or of goals. Descents of a round count as visits of
            value 0 for later ones of the round, so that they differ.
        backup: The value of a move: the mean over descents (``mean``), or the current values of its subgoals
            under their best moves so far (``max``).
    """

    budget: PositiveInt = 64
    rule: Literal["puct", "breadth", "best"] = "puct"
    combine: Literal["product", "minimum"] = "product"
    c: NonNegativeFloat = 1.0
    gamma: Share = 0.99
    leaves: PositiveInt = 1
    backup: Literal["mean", "max"] = "mean"

    def search(
        self, goals: Sequence[Any], moves: Moves, evaluator: Evaluator, rngs: Sequence[np.random.Generator]
    ) -> list[Tree]:
        """Search for proofs of several goals in parallel; return the tree of each.

        Args:
            goals: The goals to prove; hashable.
            moves: Returns the moves of goals.
            evaluator: Gives the priors of moves, and values from 0 to 1, of goals that are still open
                after their expansion.
            rngs: A random generator for each goal.

        Raises:
            UsageError: if a setting is out of range, or the evaluator's answers cannot be used.
        """
        check_settings(self)
        trees = [Tree(Goal(goal), rng) for goal, rng in zip(goals, rngs, strict=True)]
        while chosen := [(tree, leaf) for tree in trees for leaf in self._select(tree)]:
            leaves = [leaf for _, leaf in chosen]
            # Expand: the moves of all leaves. This may prove or refute the goals above.
            moves_of_leaves = moves([leaf.state for leaf in leaves])
            for leaf, moves_of_leaf in zip(leaves, moves_of_leaves, strict=True):
                leaf.expand(moves_of_leaf)
            # Evaluate: priors p(move | goal) and values V(goal) of those that are still open.
            self._evaluate([leaf for leaf in leaves if leaf.open], evaluator)
            for tree, leaf in chosen:
                tree.expansions += 1
                if self.rule != "puct" and leaf.open:
                    self._queue(tree, leaf)
            # Back up: the value of each descent goes to all moves of its hyperpath.
            for tree in trees:
                for hyperpath in tree.hyperpaths:
                    self._back_up(hyperpath)
        return trees

    def _evaluate(self, leaves: Sequence[Goal], evaluator: Evaluator) -> None:
        if not leaves:
            return
        counts = [len(leaf.moves or ()) for leaf in leaves]
        estimates = evaluated(evaluator, [leaf.state for leaf in leaves], counts)
        for leaf, (prior, value) in zip(leaves, estimates, strict=True):
            if not 0 <= value <= 1:
                raise UsageError(f"The evaluator's values must be from 0 to 1, not {value:g}.")
            leaf.prior = prior.tolist()
            leaf.value = value

    def _select(self, tree: Tree) -> list[Goal]:
        """Return the goals to expand in this round, within the budget."""
        left = self.budget - tree.expansions
        tree.hyperpaths = []
        if not left or not tree.root.open:
            return []
        if self.rule != "puct" and tree.expansions:
            return list(islice(self._next(tree), min(self.leaves, left)))
        chosen: dict[Goal, None] = {}  # an ordered set
        for _ in range(self.leaves):
            hyperpath, leaves = self._descend(tree)
            tree.hyperpaths.append(hyperpath)
            before = len(chosen)
            chosen |= dict.fromkeys(leaves)
            if len(chosen) >= left or len(chosen) == before:  # further descents would find nothing new
                break
        return list(chosen)[:left]

    # ---- PUCT -----------------------------------------------------------------------------------------

    def _descend(self, tree: Tree) -> tuple[Hyperpath, list[Goal]]:
        """Return the best moves from the root down, and the goals that they lead to."""
        hyperpath: Hyperpath = []
        leaves = []
        below = [tree.root]
        while below:
            goal = below.pop()
            if goal.moves is None:
                leaves.append(goal)
                continue
            move = self._best(goal, tree.rng)
            move.pending += 1
            hyperpath.append(move)
            # All subgoals must hold, so the descent goes into every open one.
            below += [subgoal for subgoal in reversed(move.subgoals) if subgoal.open]
        return hyperpath, leaves

    def _best(self, goal: Goal, rng: np.random.Generator) -> Move:
        """Return the move with the largest bound Q + c p sqrt(N) / (1 + n) (PUCT)."""
        moves, priors = [], []
        for move, prior in zip(goal.moves or (), goal.prior, strict=True):
            if not move.refuted:
                moves.append(move)
                priors.append(prior)
        # A descent without a value yet counts as one of value 0, so that the next one goes elsewhere.
        counts = [move.visits + move.pending for move in moves]
        n = sum(counts)
        bounds = []
        for move, prior, k in zip(moves, priors, counts, strict=True):
            q = move.total / k if k else goal.value
            bounds.append(puct(q, k, n, self.c, prior))
        return moves[largest(bounds, rng)]

    def _back_up(self, hyperpath: Hyperpath) -> None:
        """Add the value of a descent to its moves, from below::

        V(goal) = gamma * product (or minimum) of V(subgoal) over the subgoals of its move
        """
        values: dict[Goal, float] = {}  # of the goals below, in this descent
        for move in reversed(hyperpath):
            value = self._combined([self._value(subgoal, values) for subgoal in move.subgoals])
            move.visits += 1
            move.pending -= 1
            move.total += value
            if self.backup == "max":
                move.total = move.visits * value  # the subgoals' current value replaces the earlier ones
                known = [other.value for other in move.goal.moves or () if other.visits and not other.refuted]
                value = max(known, default=value)
            values[move.goal] = value

    def _value(self, goal: Goal, values: dict[Goal, float]) -> float:
        """Return what a subgoal is worth; one that the budget did not reach counts as the goal above it."""
        if not goal.open:
            return float(goal.proof is not None)
        if goal.moves is None and goal.move:
            return goal.move.goal.value
        return values.get(goal, goal.value)

    def _combined(self, values: Sequence[float]) -> float:
        """Return the value of a move from those of its subgoals; without subgoals it proves its goal."""
        together = prod(values) if self.combine == "product" else min(values, default=1.0)
        return self.gamma * together

    # ---- breadth first, best first --------------------------------------------------------------------

    def _queue(self, tree: Tree, leaf: Goal) -> None:
        """Add the subgoals of an expanded goal at their costs: depth, or -log of the priors."""
        for move, prior in zip(leaf.moves or (), leaf.prior, strict=True):
            surprise = -log(prior) if prior else inf
            step = 1.0 if self.rule == "breadth" else surprise
            for subgoal in move.subgoals:
                subgoal.cost = leaf.cost + step
                heapq.heappush(tree.queue, (subgoal.cost, next(tree.number), subgoal))

    def _next(self, tree: Tree) -> Iterator[Goal]:
        """Goals from the queue, those of the lowest cost first, without those that no longer matter."""
        while tree.queue:
            goal = heapq.heappop(tree.queue)[-1]
            if goal.wanted:
                yield goal


def nodes(root: Goal) -> Iterator[Goal]:
    """Yield the goals of a tree, each before those below it."""
    left = [root]
    while left:
        node = left.pop()
        yield node
        left += [goal for move in node.moves or () for goal in move.subgoals]
