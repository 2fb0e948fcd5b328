"""The evaluator of states, which all searches use, and the bounds by which they select actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log, sqrt
from typing import Any, Protocol, TypeAlias

import numpy as np

from hunch.core import FloatArray, UsageError

Actions: TypeAlias = Callable[[Any], Sequence[Any]]
"""Function that returns the actions of a state."""


class Evaluator(Protocol):
    """Estimates priors and values of states for a search without looking ahead, for many trees at once."""

    def evaluate(self, states: Sequence[Any]) -> tuple[Sequence[FloatArray], Sequence[float] | FloatArray]:
        """Return the priors of each state's actions, in their order, and the value of each state."""


class Uniform:
    """Equal priors and a constant value: the control of every evaluator.

    Args:
        actions: Returns the actions of a state.
        value: The value of every state.
    """

    def __init__(self, actions: Actions, value: float = 0.0) -> None:
        self.actions, self.value = actions, value

    def evaluate(self, states: Sequence[Any]) -> tuple[list[FloatArray], list[float]]:
        """Return equal priors and the value."""
        counts = [len(self.actions(state)) for state in states]
        return [np.full(n, 1 / max(n, 1)) for n in counts], [self.value] * len(counts)


def evaluated(
    evaluator: Evaluator, states: Sequence[Any], counts: Sequence[int]
) -> list[tuple[FloatArray, float]]:
    """Return priors and values after checking them; ``counts`` are the numbers of actions.

    Raises:
        UsageError: if their numbers are wrong, or one is not a finite number.
    """
    priors, values = evaluator.evaluate(states)
    if not len(priors) == len(values) == len(states):
        returned = f"{len(priors)} priors and {len(values)} values for {len(states)} states"
        raise UsageError(f"The evaluator of the search returned {returned}.")
    for prior, value, count in zip(priors, values, counts, strict=True):
        if np.shape(prior) != (count,):
            raise UsageError(
                f"The evaluator of the search returned priors of shape {np.shape(prior)} for {count} actions."
            )
        if not (np.isfinite(value) and np.isfinite(prior).all()):
            raise UsageError(
                "The evaluator of the search returned a value or prior that is not a finite number."
            )
        if min(prior, default=0.0) < 0:
            raise UsageError(f"The evaluator of the search returned a negative prior: {min(prior):g}.")
    return [(np.asarray(prior, float), float(value)) for prior, value in zip(priors, values, strict=True)]


def largest(scores: Sequence[float], rng: np.random.Generator) -> int:
    """Return the index of the largest score; among equals a random one."""
    top = max(scores)
    ties = [i for i, score in enumerate(scores) if score == top]
    return ties[int(rng.integers(len(ties)))]


def uct(value: float, visits: int, n: int, c: float) -> float:
    """Return the upper confidence bound of an action (UCT); ``n`` counts the visits of all actions."""
    return value + c * sqrt(log(n) / visits) if visits else inf


def puct(value: float, visits: int, n: int, c: float, prior: float) -> float:
    """Return the upper confidence bound of an action with a prior (PUCT); ``n`` counts all visits."""
    return value + c * prior * sqrt(max(n, 1)) / (1 + visits)
