"""Calibration: maps values to probabilities of success, and measures the quality of the probabilities.

Isotonic regression by pooling adjacent violators (Ayer et al., 1955), with one success and one failure added
to each pool, so that no probability is 0 or 1 only for lack of episodes. The Brier score is the mean squared
error of the probabilities.

The addition may break the order of two pools: no success in one episode becomes 1/3, and one success in the
next 1,000 becomes 2/1,002. Such pools violate the order, too, and are joined: 2/1,003. To raise the second to
the first instead would promise 333 successes of which one was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hunch.core import FloatArray


@dataclass(frozen=True)
class Calibration:
    """A non-decreasing step function from values to probabilities.

    Attributes:
        values: Smallest value of each step, ascending, shape (steps,).
        probabilities: Probability of success at each step, same shape.
    """

    values: FloatArray
    probabilities: FloatArray

    @classmethod
    def fit(cls, values: Sequence[float], successes: Sequence[bool]) -> Calibration:
        """Fit to the values predicted before episodes, and their successes.

        Raises:
            ValueError: if there are no episodes.
        """
        if not len(values):
            raise ValueError("A calibration needs at least one episode.")
        pools: list[_Pool] = []
        for value in np.unique(values):
            own = [success for v, success in zip(values, successes, strict=True) if v == value]
            pools.append(_Pool(float(value), sum(own), len(own)))
            while len(pools) > 1 and not _in_order(pools[-2], pools[-1]):
                last = pools.pop()
                earlier = pools.pop()
                joined = _Pool(earlier.value, earlier.successes + last.successes, earlier.n + last.n)
                pools.append(joined)
        return cls(np.array([p.value for p in pools]), np.array([p.probability for p in pools]))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the probability of success for each value."""
        steps = np.searchsorted(self.values, values, side="right") - 1
        return np.asarray(self.probabilities[np.maximum(steps, 0)])


class _Pool(NamedTuple):
    """Episodes that share a probability: their smallest value, their successes, and their number."""

    value: float
    successes: int
    n: int

    @property
    def probability(self) -> float:
        return (self.successes + 1) / (self.n + 2)


def _in_order(earlier: _Pool, later: _Pool) -> bool:
    """Return whether both the rate of successes and the probability rise from one pool to the next."""
    rate_rises = earlier.successes * later.n < later.successes * earlier.n
    return rate_rises and earlier.probability < later.probability


def brier(probabilities: Sequence[float] | FloatArray, successes: Sequence[bool]) -> float:
    """Return the mean squared error of probabilities: 0 is best; a constant one half gives 0.25."""
    return float(np.mean((np.asarray(probabilities) - np.asarray(successes, dtype=float)) ** 2))
