"""Search for plans: breadth-first, A* and greedy best-first, with two heuristics by relaxation.

A plan is a list of operators. A search returns None if there is no plan, and raises
:class:`SearchLimitError` if it reaches its limit of states without an answer.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from math import inf
from typing import TypeAlias

from hunch.core import HunchError
from hunch_studies.worlds.strips.grounding import Operator, ones
from hunch_studies.worlds.strips.task import Task

Plan: TypeAlias = list[Operator]
Heuristic: TypeAlias = Callable[[int], float]
"""An estimate of the steps from a state to the goal; infinity if there is no way."""


class SearchLimitError(HunchError):
    """A search has reached its limit of states."""

    def __init__(self, states: int) -> None:
        super().__init__(f"No plan was found among the first {states:,} states.")


def breadth_first(task: Task, state: int | None = None, *, states: float = inf) -> Plan | None:
    """Return a shortest plan.

    Args:
        task: The problem.
        state: First state. Default: the start.
        states: Maximum number of states.

    Raises:
        SearchLimitError: if the limit is reached.
    """
    start = task.init if state is None else state
    came: _Came = {start: None}
    for here in (queue := [start]):
        if task.solved(here):
            return _way(came, here)
        for operator in task.applicable(here):
            there = operator.after(here)
            if there not in came:
                came[there] = here, operator
                queue.append(there)
        if len(came) > states:
            raise SearchLimitError(len(came))
    return None


def astar(task: Task, heuristic: Heuristic, state: int | None = None, *, states: float = inf) -> Plan | None:
    """Return a plan by A*; a shortest one if the heuristic never overestimates.

    Args:
        task: The problem.
        heuristic: The estimate, such as ``relaxed(task, max)``.
        state: First state. Default: the start.
        states: Maximum number of states.

    Raises:
        SearchLimitError: if the limit is reached.
    """
    return _best_first(task, heuristic, state, states, weight=1)


def greedy(task: Task, heuristic: Heuristic, state: int | None = None, *, states: float = inf) -> Plan | None:
    """Return a plan by greedy best-first search, fast but often longer than necessary.

    Args:
        task: The problem.
        heuristic: The estimate, such as ``relaxed(task, sum)``.
        state: First state. Default: the start.
        states: Maximum number of states.

    Raises:
        SearchLimitError: if the limit is reached.
    """
    return _best_first(task, heuristic, state, states, weight=0)


_Came: TypeAlias = dict[int, tuple[int, Operator] | None]


def _best_first(
    task: Task, heuristic: Heuristic, state: int | None, states: float, weight: int
) -> Plan | None:
    """Expand the state with the smallest sum of ``weight`` times the steps so far and the estimate."""
    start = task.init if state is None else state
    came: _Came = {start: None}
    steps, done, order = {start: 0}, set[int](), count()
    heap = [(heuristic(start), next(order), start)]
    while heap:
        value, _, here = heapq.heappop(heap)
        if value == inf:
            return None
        if here in done:
            continue
        if task.solved(here):
            return _way(came, here)
        done.add(here)
        for operator in task.applicable(here):
            there, cost = operator.after(here), steps[here] + 1
            if there not in steps or (weight and cost < steps[there]):
                done.discard(there)
                came[there], steps[there] = (here, operator), cost
                heapq.heappush(heap, (weight * cost + heuristic(there), next(order), there))
        if len(steps) > states:
            raise SearchLimitError(len(steps))
    return None


def _way(came: _Came, state: int) -> Plan:
    plan: Plan = []
    while (last := came[state]) is not None:
        state, operator = last
        plan.append(operator)
    return plan[::-1]


def goal_count(task: Task) -> Heuristic:
    """Return the number of goal facts that do not hold yet: cheap, but not admissible."""
    return lambda state: (task.goal & ~state).bit_count() + (task.avoid & state).bit_count()


def relaxed(task: Task, combine: Callable[[list[float]], float]) -> Heuristic:
    """Return a heuristic: steps to the goal if actions deleted nothing (Bonet and Geffner, 2001).

    Args:
        task: The problem.
        combine: How the costs of several facts are combined: ``max`` never overestimates (h_max), ``sum``
            guides better but may (h_add). Negative conditions count as reached.
    """
    operators = task.ground.operators
    needed = [tuple(ones(operator.needs)) for operator in operators]
    added = [tuple(ones(operator.adds)) for operator in operators]
    waiting: dict[int, list[int]] = defaultdict(list)
    for index, facts in enumerate(needed):
        for fact in facts:
            waiting[fact].append(index)
    free = [index for index, facts in enumerate(needed) if not facts]
    goal = tuple(ones(task.goal))

    def estimate(state: int) -> float:
        if not task.possible:
            return inf
        cost = dict.fromkeys(ones(state), 0.0)
        missing = [len(facts) for facts in needed]
        heap = [(0.0, fact) for fact in cost]
        for index in free:
            _reach(added[index], 1.0, cost, heap)
        settled = set[int]()
        while heap:
            _, fact = heapq.heappop(heap)
            if fact in settled:
                continue
            settled.add(fact)
            for index in waiting[fact]:
                missing[index] -= 1
                if not missing[index]:
                    price = 1.0 + combine([cost[need] for need in needed[index]])
                    _reach(added[index], price, cost, heap)
        return combine([0.0, *(cost.get(fact, inf) for fact in goal)])

    return estimate


def _reach(
    facts: tuple[int, ...], price: float, cost: dict[int, float], heap: list[tuple[float, int]]
) -> None:
    """Note facts that are reached at a lower price than before."""
    for fact in facts:
        if price < cost.get(fact, inf):
            cost[fact] = price
            heapq.heappush(heap, (price, fact))


def plan(task: Task, state: int | None = None, *, exact: int = 20_000, states: int = 200_000) -> Plan | None:
    """Return a plan: a shortest one if breadth-first search finds it soon, else one by greedy search.

    Args:
        task: The problem.
        state: First state. Default: the start.
        exact: Maximum number of states for breadth-first search.
        states: Maximum number of states for greedy search with h_add.

    Raises:
        SearchLimitError: if both are not enough.
    """
    try:
        return breadth_first(task, state, states=exact)
    except SearchLimitError:
        return greedy(task, relaxed(task, sum), state, states=states)
