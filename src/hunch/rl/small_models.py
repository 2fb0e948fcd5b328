"""Planning over all states of a small world model: breadth-first search and value iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hunch.core import FloatArray, IntArray, UsageError
from hunch.rl.evaluator import Actions
from hunch.rl.world_model import Prediction, WorldModel


class Searched(NamedTuple):
    """The result of a search for a path.

    Attributes:
        path: The actions; None if there is no path.
        everywhere: Whether all states were searched that can be reached; else the search gave up.
    """

    path: list[Any] | None
    everywhere: bool


def breadth_first(
    model: WorldModel,
    start: Any,
    actions: Actions,
    wanted: Callable[[Prediction], bool],
    rng: np.random.Generator,
    *,
    most: int = 10_000,
) -> Searched:
    """Find the shortest path to a goal step by breadth-first search, in a deterministic model.

    Args:
        model: The world model; all steps of a level are requested together.
        start: The first state.
        actions: Returns the actions of a state.
        wanted: Returns whether a step reaches the goal.
        rng: Random generator for the model.
        most: Number of states after which the search gives up.
    """
    paths: dict[Hashable, list[Any]] = {start: []}  # to each state that was reached
    level = [start]
    while level and len(paths) <= most:
        pairs = [(state, action) for state in level for action in actions(state)]
        level = []
        if not pairs:
            break
        states, taken = zip(*pairs, strict=True)
        predictions = model.step(states, taken, [rng] * len(pairs))
        for (state, action), prediction in zip(pairs, predictions, strict=True):
            if wanted(prediction):
                return Searched([*paths[state], action], False)
            next_state = prediction.next_state
            if not prediction.done and next_state is not None and next_state not in paths:
                paths[next_state] = [*paths[state], action]
                level.append(next_state)
    return Searched(None, not level)


class Table(NamedTuple):
    """An enumerated world model: S states, at most A actions per state, K outcomes per action.

    Attributes:
        states: The states by number.
        actions: The actions of each state.
        share: Probability of each outcome, shape (S, A, K); all 0 for an action that does not exist.
        reward: Shape (S, A, K).
        after: Number of the next state, shape (S, A, K); -1 if the episode is over.
    """

    states: list[Any]
    actions: list[Sequence[Any]]
    share: FloatArray
    reward: FloatArray
    after: IntArray


def tabulate(
    model: WorldModel,
    starts: Sequence[Any],
    actions: Actions,
    rng: np.random.Generator,
    *,
    draws: int = 1,
    most: int = 10_000,
) -> Table:
    """Enumerate a model: request every reachable step, ``draws`` times each if the model is stochastic.

    Raises:
        UsageError: if there are more than ``most`` states.
    """
    numbers = {state: i for i, state in enumerate(dict.fromkeys(starts))}
    rows: list[tuple[int, int, float, int]] = []  # state, action, reward, next state; -1 for an end
    level = list(numbers)  # states that were reached and not asked about yet
    while level:
        pairs = []  # state, action and its index: each as often as it is drawn
        for state in level:
            for i, action in enumerate(actions(state)):
                pairs += [(state, action, i)] * draws
        states, taken, _ = zip(*pairs, strict=True) if pairs else ((), (), ())
        level = []
        for (state, _, i), step in zip(pairs, model.step(states, taken, [rng] * len(pairs)), strict=True):
            after = step.next_state
            if step.done or after is None:
                rows.append((numbers[state], i, step.reward or 0.0, -1))
                continue
            if after not in numbers:
                numbers[after] = len(numbers)
                level.append(after)
            rows.append((numbers[state], i, step.reward or 0.0, numbers[after]))
        if len(numbers) > most:
            raise UsageError(f"The model has more than {most:,} states, too many to list.")
    action_lists = [actions(state) for state in numbers]
    shape = len(numbers), max(map(len, action_lists), default=0), draws
    table = Table(list(numbers), action_lists, np.zeros(shape), np.zeros(shape), np.full(shape, -1))
    for n, (state, i, reward, after) in enumerate(rows):
        table.share[state, i, n % draws] = 1 / draws
        table.reward[state, i, n % draws] = reward
        table.after[state, i, n % draws] = after
    return table


def value_iteration(table: Table, gamma: float, tolerance: float = 1e-9) -> FloatArray:
    """Return Q of the optimal policy, shape (S, A); -inf for an action that does not exist.

    Raises:
        UsageError: if it does not converge, as may happen with a discount of 1 and endless episodes.
    """
    values = np.zeros(len(table.states))  # (S,): V
    exists = table.share.sum(axis=2) > 0  # (S, A)
    for _ in range(_sweeps(table, gamma, tolerance)):
        # Q(s, a) = sum over the draws of share (r + gamma V(s')), and V(s') = 0 after the end
        next_values = np.where(table.after >= 0, values[table.after], 0.0)  # (S, A, draws)
        expected = (table.share * (table.reward + gamma * next_values)).sum(axis=2)  # (S, A)
        q: FloatArray = np.where(exists, expected, -np.inf)

        # V(s) = max over a of Q(s, a); 0 where there is no action
        new_values = np.where(exists.any(axis=1), q.max(axis=1, initial=-np.inf), 0.0)
        if np.abs(new_values - values).max() <= tolerance:
            return q
        values = new_values
    raise UsageError(f"Value iteration does not converge with a discount of {gamma}: lower it.")


def _sweeps(table: Table, gamma: float, tolerance: float) -> int:
    """Return after how many sweeps the change of V is below the tolerance, at least 10,000.

    A sweep shrinks the change by the discount, and the first one is at most the largest reward; with a
    discount of 1 no number is known.
    """
    least = 10_000
    largest = float(np.abs(table.reward).max(initial=0.0))
    if not 0 < gamma < 1 or largest <= tolerance:
        return least
    return max(least, 2 + math.ceil(math.log(tolerance / largest) / math.log(gamma)))
