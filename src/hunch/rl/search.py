"""Planning in a world model: rollouts and Monte Carlo tree search.

A plan is written as a generator: it yields a step and is sent the model's prediction. So the code reads like
a single plan, and :func:`together` runs any number of plans side by side, with one call of the model for the
next steps of all. Each plan has its own random generator, so the others do not affect it. Planning over all
states is in :mod:`hunch.rl.small_models`, search in games in :mod:`hunch.rl.games`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, field
from math import inf, log, sqrt
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from hunch.core import FloatArray, IntArray, UsageError
from hunch.rl.world_model import Prediction, WorldModel

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")
Wanted: TypeAlias = tuple[Any, Any, np.random.Generator]
"""A state, an action in it, and a random generator."""
Plan: TypeAlias = Generator[Wanted, Prediction, R]
Actions: TypeAlias = Callable[[Any], Sequence[Any]]
"""The actions of a state."""


def together(answer: Callable[[Sequence[Q]], Sequence[A]], plans: Sequence[Generator[Q, A, R]]) -> list[R]:
    """Run plans side by side, and return their results.

    Args:
        answer: Answers the queries of all unfinished plans together.
        plans: Generators that yield queries and are sent the answers.
    """
    results: dict[int, R] = {}
    wanted: dict[int, Q] = {}

    def go_on(i: int, found: A | None) -> None:
        try:
            wanted[i] = plans[i].send(found)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as end:
            results[i] = end.value
            wanted.pop(i, None)

    for i in range(len(plans)):
        go_on(i, None)
    while wanted:
        live = list(wanted)
        for i, found in zip(live, answer(list(wanted.values())), strict=True):
            go_on(i, found)
    return [results[i] for i in range(len(plans))]


# ---- rollouts ---------------------------------------------------------------------------------------------


class RolloutPolicy(Protocol):
    """A policy for rollouts."""

    def choose(self, states: Sequence[Any], rngs: Sequence[np.random.Generator]) -> list[Any]:
        """Choose an action in each state, all together; ``None`` if it has none to suggest."""
        ...


def roll_out(
    model: WorldModel,
    policy: RolloutPolicy,
    states: Sequence[Any],
    actions: Sequence[Any],
    rngs: Sequence[np.random.Generator],
    *,
    depth: int,
    gamma: float,
) -> FloatArray:
    """Return the discounted return of one rollout per state and first action, shape (n,).

    A rollout ends when the model predicts the end or nothing, when the policy suggests no action, and after
    ``depth`` steps.
    """
    values = np.zeros(len(states))
    here, chosen, live = list(states), list(actions), list(range(len(states)))
    for t in range(depth):
        found = model.step([here[i] for i in live], [chosen[i] for i in live], [rngs[i] for i in live])
        for i, step in zip(live, found, strict=True):
            values[i] += gamma**t * (step.reward or 0.0)
            here[i] = step.next_state if not step.done else None
        live = [i for i in live if here[i] is not None]
        if not live or t + 1 == depth:
            break
        for i, action in zip(
            live, policy.choose([here[i] for i in live], [rngs[i] for i in live]), strict=True
        ):
            chosen[i] = action
        live = [i for i in live if chosen[i] is not None]
    return values


# ---- Monte Carlo tree search ------------------------------------------------------------------------------


@dataclass(slots=True)
class Edge:
    """An action of a node: how often it was taken, the sum of its returns, and the resulting states."""

    visits: int = 0
    total: float = 0.0
    last: Prediction | None = None
    children: dict[Hashable, Node] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """Mean return; 0 if it was never taken."""
        return self.total / max(self.visits, 1)


@dataclass(slots=True)
class Node:
    """A state of a tree."""

    state: Any
    actions: Sequence[Any]
    edges: list[Edge]
    prior: FloatArray | None = None

    @property
    def visits(self) -> IntArray:
        """How often each action was taken, shape (number of actions,)."""
        return np.array([edge.visits for edge in self.edges])

    @property
    def values(self) -> FloatArray:
        """Mean return of each action, shape (number of actions,)."""
        return np.array([edge.value for edge in self.edges])

    @property
    def best(self) -> Any:
        """The action taken most often; among equals, the one with the largest value."""
        order = range(len(self.actions))
        return self.actions[max(order, key=lambda i: (self.edges[i].visits, self.edges[i].value, -i))]


@dataclass(frozen=True, kw_only=True)
class MCTS:
    """Monte Carlo tree search: UCT, or PUCT if there is a prior.

        repeat for the number of simulations
            descend from the root by the upper confidence bound; each outcome of chance is a separate child
            at a new state: add it, and continue at random
            add the return to every action on the path

    UCT (Kocsis and Szepesvari 2006) uses Q + c sqrt(ln N / n), untried actions first; PUCT (Silver et al.
    2017) uses Q + c p sqrt(N) / (1 + n). Values are not normalised: choose c according to their scale.

    Args:
        simulations: Number of simulations.
        depth: Maximum number of steps of a random rollout, and of a descent.
        c: Weight of the uncertainty term.
        gamma: Discount per step.
        chance: True if the model is stochastic. If False, each step is requested once per tree.
        prior: Probabilities of the actions of a state, shape (number of actions,), for PUCT.
        turn: Returns the player to move, in a two-player zero-sum game; a reward belongs to the player who
            has moved. Default: a single player.
    """

    simulations: int = 25
    depth: int = 100
    c: float = 1.0
    gamma: float = 0.99
    chance: bool = True
    prior: Callable[[Any, Sequence[Any]], FloatArray] | None = None
    turn: Callable[[Any], int] | None = None

    def search(
        self,
        model: WorldModel,
        states: Sequence[Any],
        actions: Actions,
        rngs: Sequence[np.random.Generator],
    ) -> list[Node]:
        """Grow a tree from each state, side by side; return the roots."""
        plans = [self.plan(state, actions, rng) for state, rng in zip(states, rngs, strict=True)]
        return together(lambda wanted: model.step(*zip(*wanted, strict=True)), plans)

    def plan(self, state: Any, actions: Actions, rng: np.random.Generator) -> Plan[Node]:
        """Grow one tree."""
        root = self._node(state, actions)
        if not root.actions:
            raise UsageError("There is no action to plan for.")
        for _ in range(self.simulations):
            yield from self._simulate(root, actions, rng)
        return root

    def _node(self, state: Any, actions: Actions) -> Node:
        own = actions(state)
        prior = self.prior(state, own) if self.prior and own else None
        return Node(state, own, [Edge() for _ in own], prior)

    def _simulate(self, root: Node, actions: Actions, rng: np.random.Generator) -> Plan[None]:
        node, value = root, 0.0
        way: list[tuple[Any, Edge, Prediction]] = []
        while node.actions and len(way) < self.depth:
            i = self._select(node, rng)
            edge = node.edges[i]
            if self.chance or edge.last is None:
                edge.last = yield node.state, node.actions[i], rng
            way.append((node.state, edge, edge.last))
            after = edge.last.next_state
            if edge.last.done or after is None:
                break
            if after not in edge.children:
                edge.children[after] = self._node(after, actions)
                value = yield from self._play_on(after, actions, rng)
                break
            node = edge.children[after]
        self._back_up(way, value)

    def _select(self, node: Node, rng: np.random.Generator) -> int:
        n = sum(edge.visits for edge in node.edges)
        scores = [self._score(n, edge, i, node.prior) for i, edge in enumerate(node.edges)]
        top = max(scores)
        ties = [i for i, score in enumerate(scores) if score == top]
        return ties[int(rng.integers(len(ties)))] if len(ties) > 1 else ties[0]

    def _score(self, n: int, edge: Edge, i: int, prior: FloatArray | None) -> float:
        """Return the upper confidence bound of an action whose node was left n times."""
        if prior is not None:
            return edge.value + self.c * float(prior[i]) * sqrt(max(n, 1)) / (1 + edge.visits)
        return edge.value + self.c * sqrt(log(n) / edge.visits) if edge.visits else inf

    def _play_on(self, state: Any, actions: Actions, rng: np.random.Generator) -> Plan[float]:
        """Return the return of a random rollout, for the player to move in the state."""
        value, weight = 0.0, 1.0
        for _ in range(self.depth):
            own = actions(state)
            if not own:
                break
            found = yield state, own[int(rng.integers(len(own)))], rng
            value += weight * (found.reward or 0.0)
            if found.done or found.next_state is None:
                break
            weight *= self.gamma * self._sign(state, found.next_state)
            state = found.next_state
        return value

    def _back_up(self, way: Sequence[tuple[Any, Edge, Prediction]], value: float) -> None:
        """Add the return from each step to its action; ``value`` is for the player to move at the end."""
        for state, edge, found in reversed(way):
            sign = 1 if found.done or found.next_state is None else self._sign(state, found.next_state)
            value = (found.reward or 0.0) + self.gamma * sign * value
            edge.visits += 1
            edge.total += value

    def _sign(self, state: Any, after: Any) -> int:
        return 1 if self.turn is None or self.turn(state) == self.turn(after) else -1
