"""Statistics over few seeds: interquartile mean and bootstrap interval (Agarwal et al., NeurIPS 2021).

A bootstrap over few seeds is too narrow: of normal scores its 95 % interval covers the true value in 0.91 of
cases with five seeds, in 0.94 with eight. With three it is their range, which covers it in 0.75. So below
:data:`FEW` seeds the range is reported, and called a range; and no verdict rests on the bootstrap (see
:func:`contrast`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hunch.core import FloatArray
from hunch.rl.success import Estimate as Estimate
from hunch.rl.success import first_reached as first_reached
from hunch.rl.success import over_episodes as over_episodes

FEW = 5
"""Minimum number of seeds for an interval; with fewer seeds the range is reported."""
FEWEST = 3
"""Minimum number of pairs for a claim; of two equal methods, two seeds put one ahead in a third of cases."""
ROOM = 0.05
"""Share of the best possible score that must be left above the other method for a verdict."""
TENTHS = 10
"""Number of equal parts of a run's steps over which the area under the success curve is computed."""


def interquartile_mean(values: Sequence[float] | FloatArray, axis: int = 0) -> FloatArray:
    """Return the mean of the middle half, or the mean of fewer than four values.

    Without values it is nan. It is nan, too, where a value is nan: sorted, an unknown score would stand above
    all others and be cut off as the best.
    """
    array = np.moveaxis(np.asarray(values, dtype=float), axis, 0)
    n, cut = len(array), len(array) // 4
    if not n:
        return np.asarray(float("nan"))
    middle = np.partition(array, (cut, n - cut - 1), axis=0)[cut : n - cut].mean(axis=0)
    return np.where(np.isnan(array).any(axis=0), np.nan, middle)


def over_seeds(values: Sequence[float]) -> Estimate:
    """Return the interquartile mean over seeds with its bootstrap interval, or the range below five seeds.

    With one seed the interval is nan, because nothing is known about the spread.
    """
    centre = float(interquartile_mean(values))
    if len(values) < 2:
        return Estimate(centre, float("nan"), float("nan"))
    low, high = band_over_seeds(np.asarray(values, dtype=float), resamples=5000)
    return Estimate(centre, float(low), float(high), len(values) if len(values) < FEW else 0)


def band_over_seeds(values: FloatArray, resamples: int = 1000) -> tuple[FloatArray, FloatArray]:
    """Return the 95 % percentile bootstrap interval of the interquartile mean at each point of a curve.

    Below five seeds the bounds are the smallest and the largest value.

    Args:
        values: Shape (seeds, points), or (seeds,) for one point.
        resamples: Bootstrap resamples of the seeds.

    Returns:
        Lower and upper bound, each of shape (points,), or each one number.
    """
    if len(values) < FEW:
        return values.min(axis=0), values.max(axis=0)
    picks = np.random.default_rng(0).integers(len(values), size=(resamples, len(values)))
    low, high = np.percentile(interquartile_mean(values[picks], axis=1), [2.5, 97.5], axis=0)
    return low, high


def over_pairs(differences: Sequence[float]) -> Estimate:
    """Return the mean of paired differences with Student's 95 % interval; nan with one pair."""
    from scipy.special import stdtrit

    values = np.asarray(differences, dtype=float)
    centre = float(values.mean()) if len(values) else float("nan")
    if len(values) < 2:
        return Estimate(centre, float("nan"), float("nan"))
    half = float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / np.sqrt(len(values)))
    return Estimate(centre, centre - half, centre + half)


def area(steps: Sequence[int], successes: Sequence[bool], total: int) -> float:
    """Return the area under the learning curve: the mean success rate over ten tenths of a run's steps.

    Episodes count in the tenth where they end. A tenth without episodes has the rate of the one before; the
    first has 0.
    """
    places = np.minimum((np.asarray(steps, dtype=float) - 1) * TENTHS // total, TENTHS - 1)
    rates: list[float] = []
    for tenth in range(TENTHS):
        successes_there = np.asarray(successes, dtype=float)[places == tenth]
        if len(successes_there):
            rates.append(float(successes_there.mean()))
        else:
            rates.append(rates[-1] if rates else 0.0)
    return float(np.mean(rates))


@dataclass(frozen=True, slots=True)
class Contrast:
    """Evidence from seeds about two methods, as the verdict and the report state it.

    Attributes:
        pairs: Number of seeds that both methods have.
        lead: Mean difference of the scores of a pair, with Student's 95 % interval.
        lacks: What is missing for a verdict of this comparison; empty if nothing is.
    """

    pairs: int
    lead: Estimate
    lacks: str = ""

    @property
    def shown(self) -> bool | None:
        """True if the first method is shown to be ahead; None if that cannot be shown here."""
        return None if self.lacks else self.lead.low > 0

    @property
    def said(self) -> str:
        """The verdict: ``shown``, ``not shown`` or ``cannot be shown here``."""
        return {True: "shown", False: "not shown", None: "cannot be shown here"}[self.shown]

    @property
    def size(self) -> str:
        """The lead with its interval as text, or what is missing."""
        return self.lacks or f"by {self.lead.short()}"

    def __str__(self) -> str:
        if self.shown is None:
            return f"{self.said} ({self.lacks}), lead {self.lead.short()}"
        return f"{self.said}, {self.size}"


def contrast(
    scores: Mapping[int, float], others: Mapping[int, float], *, best: float | None = None
) -> Contrast:
    """Compare the scores of two methods by seed; scores that are nan are ignored.

    The first is shown to be ahead if Student's two-sided 95 % interval of the lead, paired by seed, is above
    0. This is the one rule of the project. Pairs are runs with the same seed also where seeds have nothing in
    common: this costs degrees of freedom, and is valid. It cannot be shown with fewer than :data:`FEWEST`
    pairs; where the other method has more than 1 - :data:`ROOM` of the best possible score; and where both
    have 0 in every run.

    Args:
        scores: Score of each seed of the method.
        others: Score of each seed of the other method.
        best: The best possible score, where 0 is the worst, as for success rates; None if it is not known.
    """
    first = {seed: score for seed, score in scores.items() if not np.isnan(score)}
    second = {seed: score for seed, score in others.items() if not np.isnan(score)}
    both = sorted(first.keys() & second.keys())
    lead = over_pairs([first[seed] - second[seed] for seed in both])
    if len(both) < FEWEST:
        pairs = f"{len(both)} pair{'s' * (len(both) != 1)} of seeds, {FEWEST} are needed"
        return Contrast(len(both), Estimate(lead.value, float("nan"), float("nan")), pairs)
    if best is None or lead.low > 0:
        return Contrast(len(both), lead)
    other = float(np.mean([second[seed] for seed in both]))
    if other > best * (1 - ROOM):
        return Contrast(len(both), lead, f"no room: the other has {other:.2f} of {best:g}")
    if not any(first[seed] or second[seed] for seed in both):
        return Contrast(len(both), lead, "no run of either ever succeeded")
    return Contrast(len(both), lead)


def compared(scores: Sequence[float], others: Sequence[float], *, best: float | None = None) -> Contrast:
    """Compare the scores of two methods, each listed seed by seed; see :func:`contrast`."""
    return contrast(dict(enumerate(scores)), dict(enumerate(others)), best=best)


def cycles(verdicts: Sequence[tuple[str, str, int]]) -> float | None:
    """Return the share of triples of items whose majority verdicts form a cycle; None without triples.

    Args:
        verdicts: Two items, and 1 or 2 for the better one; 0 for neither.
    """
    margin: dict[tuple[str, str], int] = {}
    for first, second, verdict in verdicts:
        if verdict:
            gain = 1 if verdict == 1 else -1
            margin[first, second] = margin.get((first, second), 0) + gain
            margin[second, first] = margin.get((second, first), 0) - gain
    names = sorted({name for pair in margin for name in pair})
    triples = [
        (margin[a, b], margin[b, c], margin[c, a])
        for a, b, c in combinations(names, 3)
        if {(a, b), (b, c), (c, a)} <= margin.keys()
    ]
    turning = [min(t) > 0 or max(t) < 0 for t in triples]
    return float(np.mean(turning)) if turning else None
