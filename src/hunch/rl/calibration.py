"""Calibration: maps values to probabilities of success, and measures the quality of the probabilities.

Isotonic regression by pooling adjacent violators (Ayer et al., 1955), with one success and one failure added
to each pool, so that no probability is 0 or 1 only for lack of episodes. The Brier score is the mean squared
error of the probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
        pools: list[tuple[float, int, int]] = []  # least value, successes, episodes
        for value in np.unique(values):
            own = [s for v, s in zip(values, successes, strict=True) if v == value]
            pools.append((float(value), sum(own), len(own)))
            while len(pools) > 1 and pools[-2][1] * pools[-1][2] >= pools[-1][1] * pools[-2][2]:
                (least, won, n), (_, more, m) = pools[-2:]
                pools[-2:] = [(least, won + more, n + m)]
        shares = np.array([(won + 1) / (n + 2) for _, won, n in pools])
        return cls(np.array([least for least, _, _ in pools]), np.maximum.accumulate(shares))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the probability of success for each value."""
        steps = np.searchsorted(self.values, values, side="right") - 1
        return np.asarray(self.probabilities[np.maximum(steps, 0)])


def brier(probabilities: Sequence[float] | FloatArray, successes: Sequence[bool]) -> float:
    """Return the mean squared error of probabilities: 0 is best; a constant one half gives 0.25."""
    return float(np.mean((np.asarray(probabilities) - np.asarray(successes, dtype=float)) ** 2))
