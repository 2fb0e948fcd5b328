"""Calibration: maps values to probabilities of success, and measures the quality of probabilities.

Isotonic regression by pooling adjacent violators (Ayer et al., 1955), with one success and one failure added
to each pool, so that no probability is 0 or 1 only for lack of episodes. The Brier score is the mean squared
error of the probabilities.

The addition may break the order of two pools: no success in one episode becomes 1/3, and one success in the
next 1,000 becomes 2/1,002. Such pools violate the order, too, and are joined: 2/1,003. To raise the second to
the first instead would promise 333 successes of which one was seen.

Probabilities are calibrated if of all events with the stated probability 0.7, seven in ten come true. The
expected calibration error is the mean distance of the two, in bins of equal width (Guo et al., "On
Calibration of Modern Neural Networks", ICML 2017).
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
            outcomes = [success for v, success in zip(values, successes, strict=True) if v == value]
            pools.append(_Pool(float(value), sum(outcomes), len(outcomes)))
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


class Bin(NamedTuple):
    """Events with similar stated probabilities.

    Attributes:
        predicted: Mean of the stated probabilities.
        observed: Share of the events that came true.
        n: Number of events.
    """

    predicted: float
    observed: float
    n: int


def reliability(
    probabilities: Sequence[float] | FloatArray, successes: Sequence[bool] | FloatArray, bins: int = 10
) -> list[Bin]:
    """Compare stated probabilities with success rates, in bins of equal width; empty bins are left out."""
    predicted = np.asarray(probabilities, dtype=float)
    observed = np.asarray(successes, dtype=float)
    place = np.minimum((predicted * bins).astype(int), bins - 1)
    members = [place == i for i in range(bins)]
    return [
        Bin(float(predicted[i].mean()), float(observed[i].mean()), int(i.sum())) for i in members if i.any()
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return the expected calibration error of some bins: 0 is best, and nan without events."""
    n = sum(one.n for one in bins)
    if n == 0:
        return float("nan")
    return sum(one.n / n * abs(one.predicted - one.observed) for one in bins)


def error_by_chance(probabilities: Sequence[float] | FloatArray, bins: int = 10, draws: int = 1000) -> float:
    """Return the error that exactly right probabilities stay below in 95 % of all samples of these events.

    Few events give an error above 0 even then. Only a larger error says that a model is badly calibrated.
    """
    predicted = np.asarray(probabilities, dtype=float)
    if not len(predicted):
        return float("nan")
    samples = np.random.default_rng(0).random((draws, len(predicted))) < predicted  # (draws, events)
    errors = [calibration_error(reliability(predicted, occurred, bins)) for occurred in samples]
    return float(np.quantile(errors, 0.95))
