"""The success rate of one run with an interval, and the step at which it reached a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

WINDOW = 50
"""Number of episodes in a window over which the success rate is computed (ours)."""
_Z = 1.959963984540054
"""The normal distribution's quantile at 0.975; to import it from scipy would take a run half a second."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval; with few seeds (``range_of``) the range of the seeds instead."""

    value: float
    low: float
    high: float
    range_of: int = 0

    def __str__(self) -> str:
        if self.range_of > 1:
            return f"{self.value:.2f} (range of {self.range_of} seeds: {self.low:.2f} to {self.high:.2f})"
        return self.short()

    def short(self, digits: int = 2) -> str:
        """Return the value with its bounds as a short text, for a table that explains them.

        A single run has no bounds. Without a value the text is a dash.

        Args:
            digits: Digits after the point.
        """
        if np.isnan(self.low):
            return "-" if np.isnan(self.value) else f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def over_episodes(successes: Sequence[bool], error: float = 0.05) -> Estimate:
    """Return the success rate of one run with its Wilson interval; nan if no episode ended.

    Args:
        successes: Success of each episode.
        error: Share of the intervals that miss the rate; 0.05 makes one of 95 %.
    """
    if not successes:
        return Estimate(float("nan"), float("nan"), float("nan"))
    z = _Z if error == 0.05 else NormalDist().inv_cdf(1 - error / 2)
    k, n = int(sum(successes)), len(successes)
    p, width = k / n, 2 * (n + z**2)
    centre, half = (2 * n * p + z**2) / width, z / width * (4 * n * p * (1 - p) + z**2) ** 0.5
    return Estimate(p, centre - half if k else 0.0, centre + half if k < n else 1.0)


def first_reached(
    steps: Sequence[int], successes: Sequence[bool], threshold: float, window: int = WINDOW
) -> int | None:
    """Return the step at which the success rate reached a threshold in two consecutive windows of episodes.

    A single window of a noisy curve may pass any threshold by chance, so the second window, which has other
    episodes, must confirm the first.

    Args:
        steps: Last step of each episode, ascending.
        successes: Success of each episode.
        threshold: The success rate.
        window: Episodes per window.

    Returns:
        The step at the end of the first window; None if the threshold was not reached.
    """
    total = np.concatenate([[0], np.cumsum(successes)])
    # A rate, not a count: 0.56 * 50 is rounded to more than 28.
    rates = (total[window:] - total[:-window]) / window
    both = (rates[:-window] >= threshold) & (rates[window:] >= threshold)
    return int(steps[int(np.argmax(both)) + window - 1]) if both.any() else None
