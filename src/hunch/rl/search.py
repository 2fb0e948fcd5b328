"""Planning in a world model: rollouts and Monte Carlo tree search.

A plan is written as a generator: it yields a step and receives the model's prediction. So the code reads like
a single plan, and :func:`together` runs any number of plans in parallel, with one call of the model for the
next steps of all. Each plan has its own random generator, so the others do not affect it. Search for proofs
is in :mod:`hunch.rl.and_or`, planning over all states in :mod:`hunch.rl.small_models`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from hunch.core import FloatArray, IntArray, UsageError
from hunch.ranges import PositiveInt, check_settings
from hunch.rl.evaluator import Actions, Evaluator, evaluated, largest, puct, uct
from hunch.rl.world_model import Prediction, WorldModel

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")
StepQuery: TypeAlias = tuple[Any, Any, np.random.Generator]
"""A state, an action in it, and a random generator."""


def together(
    answer: Callable[[Sequence[Q]], Sequence[A]],
    plans: Sequence[Generator[Q, A, R]],
    late: Callable[[Q], bool] = lambda query: False,
) -> list[R]:
    """Run plans in parallel, and return their results.

    Args:
        answer: Answers the queries of all unfinished plans together.
        plans: Generators that yield queries and receive the answers.
        late: Returns True for a query that waits until all unfinished plans have such a query; they are then
            answered in one call.
    """
    results: dict[int, R] = {}
    queries: dict[int, Q] = {}  # of the unfinished plans

    def advance(i: int, reply: A | None) -> None:
        """Give a plan the answer to its query, and run it up to its next query or its end."""
        try:
            queries[i] = plans[i].send(reply)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as end:
            results[i] = end.value
            queries.pop(i, None)

    for i in range(len(plans)):
        advance(i, None)
    while queries:
        now = [i for i, query in queries.items() if not late(query)] or list(queries)
        replies = answer([queries[i] for i in now])
        for i, reply in zip(now, replies, strict=True):
            advance(i, reply)
    return [results[i] for i in range(len(plans))]


# ---- rollouts ---------------------------------------------------------------------------------------------


class RolloutPolicy(Protocol):
    """A policy for rollouts."""

    def choose(self, states: Sequence[Any], rngs: Sequence[np.random.Generator]) -> list[Any]:
        """Choose an action in each state, all together; ``None`` for no suggestion."""


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
    """Return the discounted returns of rollouts, one per state and first action, shape (n,).

    A rollout ends when the model predicts the end or nothing, when the policy suggests no action, and after
    ``depth`` steps.
    """
    returns = np.zeros(len(states))
    state = list(states)  # the current one of each rollout
    action = list(actions)  # its next one
    running = list(range(len(states)))  # rollouts that have not ended
    for t in range(depth):
        predictions = model.step(
            [state[i] for i in running], [action[i] for i in running], [rngs[i] for i in running]
        )
        for i, prediction in zip(running, predictions, strict=True):
            # G = sum_t gamma^t r_t; a model may predict no reward
            returns[i] += gamma**t * (prediction.reward or 0.0)
            state[i] = None if prediction.done else prediction.next_state
        running = [i for i in running if state[i] is not None]
        if not running or t + 1 == depth:
            break
        chosen = policy.choose([state[i] for i in running], [rngs[i] for i in running])
        for i, next_action in zip(running, chosen, strict=True):
            action[i] = next_action
        running = [i for i in running if action[i] is not None]
    return returns


# ---- Monte Carlo tree search ------------------------------------------------------------------------------


@dataclass(slots=True)
class Edge:
    """An action of a node: how often it was taken, the sum of its returns, and the resulting states.

    Attributes:
        pending: Number of descents through the edge that have no value yet.
        last: The latest prediction.
    """

    visits: int = 0
    total: float = 0.0
    pending: int = 0
    last: Prediction | None = None
    children: dict[Hashable, Node] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """Mean return; 0 if the action was never taken."""
        return self.total / max(self.visits, 1)


@dataclass(slots=True, eq=False)
class Node:
    """A state of a tree.

    Attributes:
        state: The state.
        actions: The actions of the state.
        edges: Statistics of each action.
        prior: The evaluator's priors of the actions, if there is an evaluator.
        value: The evaluator's value.
        passed: How often the state was reached, and the value last reported to its parent (backup ``max``).
    """

    state: Any
    actions: Sequence[Any]
    edges: list[Edge]
    prior: FloatArray | None = None
    value: float = 0.0
    passed: tuple[int, float] = (0, 0.0)

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

    def renew(self, value: float) -> float:
        """Store a new value; return the change of the sum of values that the parent has received."""
        visits, old = self.passed
        self.passed = visits + 1, value
        return visits * (value - old)


Plan: TypeAlias = Generator["StepQuery | list[Node]", "Prediction | None", R]
"""A plan: yields a step and receives the prediction, or yields nodes, which are then evaluated."""
Path: TypeAlias = list[tuple[Node, Edge, Prediction]]
"""The nodes of a descent from the root, each with the edge that was taken and what the model predicted."""


@dataclass(frozen=True, kw_only=True)
class MCTS:
    """Monte Carlo tree search: UCT, or PUCT if there is an evaluator.

        repeat for the number of simulations
            descend from the root by the upper confidence bound; each outcome of chance is a separate child
            at a new state: add it, and continue at random, or ask the evaluator
            add the return to every action on the path

    UCT (Kocsis and Szepesvari 2006) uses Q + c sqrt(ln N / n), untried actions first; PUCT (Silver et al.
    2017) uses Q + c p sqrt(N) / (1 + n). Values are not normalised: choose c according to their scale.

    The evaluator is asked once per round for all trees, each with the leaves of ``leaves`` descents.
    Descents without a value yet count as visits in the bound, without a return (Liu et al. 2020), so that
    later ones differ. It is also asked for the priors of the roots.

    Args:
        simulations: Number of simulations.
        depth: Maximum number of steps of a random rollout, and of a descent.
        c: Weight of the exploration term.
        gamma: Discount per step.
        chance: True if the model is stochastic. If False, each step is requested once per tree.
        evaluator: Gives priors and values instead of random rollouts; values are for the player to move.
        leaves: Number of descents per round. More make larger batches, and a less informed search.
        backup: The value of an action: the mean of its returns (``mean``), or the mean reward plus what its
            next states' current values under their best actions so far (``max``).
        turn: Returns the player to move, in a two-player zero-sum game; a reward belongs to the player who
            has moved. Default: a single player.
    """

    simulations: int = 25
    depth: int = 100
    c: float = 1.0
    gamma: float = 0.99
    chance: bool = True
    evaluator: Evaluator | None = None
    leaves: PositiveInt = 1
    backup: Literal["mean", "max"] = "mean"
    turn: Callable[[Any], int] | None = None

    def search(
        self, model: WorldModel, states: Sequence[Any], actions: Actions, rngs: Sequence[np.random.Generator]
    ) -> list[Node]:
        """Grow a tree from each state, in parallel; return the roots."""
        check_settings(self)
        plans = [self.plan(state, actions, rng) for state, rng in zip(states, rngs, strict=True)]
        return together(partial(self._answer, model), plans, late=lambda query: isinstance(query, list))

    def _answer(
        self, model: WorldModel, queries: Sequence[StepQuery | list[Node]]
    ) -> Sequence[Prediction | None]:
        """Predict steps, or evaluate the nodes of all trees; queries of both kinds never come together."""
        if self.evaluator is None or not isinstance(queries[0], list):
            return model.step(*zip(*queries, strict=True))
        nodes = [node for query in queries for node in query if isinstance(node, Node)]
        estimates = evaluated(
            self.evaluator, [node.state for node in nodes], [len(node.actions) for node in nodes]
        )
        for node, (prior, value) in zip(nodes, estimates, strict=True):
            node.prior = prior
            node.value = value
        return [None] * len(queries)

    def plan(self, state: Any, actions: Actions, rng: np.random.Generator) -> Plan[Node]:
        """Grow one tree from a state."""
        root = self._node(state, actions)
        if not root.actions:
            raise UsageError("The first state has no actions to plan with.")
        if self.evaluator:
            yield [root]
        for done in range(0, self.simulations, self.leaves):
            paths: list[Path] = []
            leaves: list[Node | None] = []
            for _ in range(min(self.leaves, self.simulations - done)):
                path, leaf = yield from self._descend(root, actions, rng)
                paths.append(path)
                leaves.append(leaf)
            values = yield from self._values(leaves, actions, rng)
            for path, value in zip(paths, values, strict=True):
                self._back_up(path, value)
        return root

    def _node(self, state: Any, actions: Actions) -> Node:
        available = actions(state)
        return Node(state, available, [Edge() for _ in available])

    def _descend(
        self, root: Node, actions: Actions, rng: np.random.Generator
    ) -> Plan[tuple[Path, Node | None]]:
        """Return a path from the root, and the node at its end if that has a value to add."""
        node = root
        path: Path = []
        while node.actions and len(path) < self.depth:
            if self.evaluator and node.prior is None:
                break  # another descent of this round has reached the node, and it is not evaluated yet
            i = self._select(node, rng)
            edge = node.edges[i]
            edge.pending += 1
            if self.chance or edge.last is None:
                edge.last = yield node.state, node.actions[i], rng
            assert edge.last is not None
            path.append((node, edge, edge.last))
            next_state = edge.last.next_state
            if edge.last.done or next_state is None:
                return path, None
            if next_state not in edge.children:
                leaf = self._node(next_state, actions)
                edge.children[next_state] = leaf
                return path, leaf
            node = edge.children[next_state]
        # The path ends at a known node. Without an evaluator nothing more is added to it.
        return path, node if self.evaluator else None

    def _select(self, node: Node, rng: np.random.Generator) -> int:
        """Return the index of the action with the largest upper confidence bound."""
        # A descent without a value yet counts as a visit, so that the next one goes elsewhere.
        counts = [edge.visits + edge.pending for edge in node.edges]
        n = sum(counts)
        if node.prior is None:
            bounds = [uct(edge.value, k, n, self.c) for edge, k in zip(node.edges, counts, strict=True)]
        else:
            bounds = [
                puct(edge.value, k, n, self.c, p)
                for edge, k, p in zip(node.edges, counts, node.prior.tolist(), strict=True)
            ]
        return largest(bounds, rng)

    def _values(
        self, leaves: Sequence[Node | None], actions: Actions, rng: np.random.Generator
    ) -> Plan[list[float]]:
        """Return the values at the ends of paths: the evaluator's, or the returns of random rollouts."""
        if self.evaluator:
            # Two descents of a round may end at the same new node.
            new = [leaf for leaf in dict.fromkeys(leaves) if leaf and leaf.actions and leaf.prior is None]
            if new:
                yield new  # now each has its value and priors
            return [leaf.value if leaf else 0.0 for leaf in leaves]
        values: list[float] = []
        for leaf in leaves:
            value = 0.0
            if leaf:
                value = yield from self._play_on(leaf.state, actions, rng)
            values.append(value)
        return values

    def _play_on(self, state: Any, actions: Actions, rng: np.random.Generator) -> Plan[float]:
        """Return the return of a random rollout, for the player to move in the state."""
        total = 0.0
        weight = 1.0  # gamma^t, negative while the other player is to move
        for _ in range(self.depth):
            available = actions(state)
            if not available:
                break
            prediction = yield state, available[int(rng.integers(len(available)))], rng
            assert prediction is not None
            total += weight * (prediction.reward or 0.0)
            if prediction.done or prediction.next_state is None:
                break
            weight *= self.gamma * self._sign(state, prediction.next_state)
            state = prediction.next_state
        return total

    def _back_up(self, path: Path, value: float) -> None:
        """Add the return from each step to its action; ``value`` is for the player to move at the end."""
        for node, edge, prediction in reversed(path):
            reward = prediction.reward or 0.0
            next_state = None if prediction.done else prediction.next_state
            weight = 0.0  # of what comes after the step
            if next_state is not None:
                weight = self.gamma * self._sign(node.state, next_state)
            edge.visits += 1
            edge.pending -= 1
            # Q(s, a) is total / visits; G = r + gamma G', and -G' if the other player moves next.
            edge.total += reward + weight * value
            if self.backup == "mean":
                value = reward + weight * value
            else:
                # max: the earlier visits of the next state count with its new value, too.
                if next_state is not None:
                    edge.total += weight * edge.children[next_state].renew(value)
                value = max(edge.value for edge in node.edges if edge.visits)

    def _sign(self, state: Any, next_state: Any) -> int:
        """Return 1 if the same player moves in both states, -1 if what one gains the other loses."""
        return 1 if self.turn is None or self.turn(state) == self.turn(next_state) else -1
