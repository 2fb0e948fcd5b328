"""Statistics over few seeds: interquartile mean and bootstrap interval (Agarwal et al., NeurIPS 2021).

A bootstrap over three seeds cannot exceed their range, and covers the true value far less often than it
claims. So below :data:`FEW` seeds the range is reported, and called a range.
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
"""Minimum number of seeds for a claim; of two equal methods, two seeds put one ahead in a third of cases."""
TENTHS = 10
"""Number of equal parts of a run's steps over which the area under the success curve is computed."""


def interquartile_mean(values: Sequence[float] | FloatArray, axis: int = 0) -> FloatArray:
    """Return the mean of the middle half, or the mean of fewer than four values; nan without values."""
    array = np.moveaxis(np.asarray(values, dtype=float), axis, 0)
    n, cut = len(array), len(array) // 4
    if not n:
        return np.asarray(float("nan"))
    return np.asarray(np.partition(array, (cut, n - cut - 1), axis=0)[cut : n - cut].mean(axis=0))


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


def probability_of_improvement(scores: Sequence[float], others: Sequence[float]) -> float:
    """Return the share of pairs of runs in which one method scores above another; a tie counts half.

    This is the statistic of the rank-sum test in :func:`above`.
    """
    first, second = np.asarray(scores, dtype=float), np.asarray(others, dtype=float)
    return float((np.sign(first[:, None] - second) + 1).mean() / 2)


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
        own = np.asarray(successes, dtype=float)[places == tenth]
        rates.append(float(own.mean()) if len(own) else rates[-1] if rates else 0.0)
    return float(np.mean(rates))


def above(scores: Sequence[float], others: Sequence[float], level: float = 0.05) -> bool:
    """Return whether one method's scores exceed another's: one-sided Mann-Whitney test, p <= level.

    If one side has fewer than five seeds, all its scores must exceed all others; with fewer than three
    the result is False. Scores that are nan are ignored.
    """
    from scipy.stats import mannwhitneyu

    first, second = ([s for s in own if s == s] for own in (scores, others))
    fewest = min(len(first), len(second))
    if fewest < FEW:
        return fewest >= FEWEST and min(first) > max(second)
    exact = "exact" if max(len(first), len(second)) <= 20 else "asymptotic"
    p = mannwhitneyu(first, second, alternative="greater", method=exact).pvalue
    return bool(p <= level + 1e-12)


@dataclass(frozen=True, slots=True)
class Contrast:
    """Evidence from seeds about two methods, as the verdict and the report state it.

    Attributes:
        seeds: Number of seeds of the smaller side, or of pairs if seeds are paired.
        shown: True if the first method is shown to be better; None with fewer than three seeds.
        lead: Mean difference of the scores, with Student's 95 % interval if seeds are paired.
        probability: Probability of improvement, if the rank-sum test is used; else nan.
    """

    seeds: int
    shown: bool | None
    lead: Estimate
    probability: float

    @property
    def said(self) -> str:
        """``yes``, ``no``, or empty if there are too few seeds."""
        return "" if self.shown is None else "yes" if self.shown else "no"

    @property
    def size(self) -> str:
        """The number that belongs to the test, as text: the probability of improvement, or the lead."""
        ranks = self.shown is not None and not np.isnan(self.probability)
        return f"P = {self.probability:.2f}" if ranks else f"by {self.lead.short()}"

    def __str__(self) -> str:
        if self.shown is None:
            return f"no verdict from {self.seeds} seed{'s' * (self.seeds != 1)}, lead {self.lead.short()}"
        return self.said if np.isnan(self.lead.low) else f"{self.said}, {self.size}"


def contrast(scores: Mapping[int, float], others: Mapping[int, float], *, paired: bool) -> Contrast:
    """Compare the scores of two methods by seed; scores that are nan are ignored.

    Args:
        scores: Score of each seed of the method.
        others: Score of each seed of the other method.
        paired: Compare runs with the same seed: Student's 95 % interval of the lead must be above 0.
            Otherwise :func:`above` is the test.
    """
    first, second = ({seed: s for seed, s in own.items() if s == s} for own in (scores, others))
    both = sorted(first.keys() & second.keys())
    nothing = float("nan")
    if paired:
        seeds, lead, chance = len(both), over_pairs([first[s] - second[s] for s in both]), nothing
    else:
        seeds = min(len(first), len(second))
        ends = [float(np.mean([*own.values()])) if own else nothing for own in (first, second)]
        lead = Estimate(ends[0] - ends[1], nothing, nothing)
        chance = probability_of_improvement([*first.values()], [*second.values()]) if seeds else nothing
    if seeds < FEWEST:
        return Contrast(seeds, None, Estimate(lead.value, nothing, nothing), chance)
    shown = lead.low > 0 if paired else above([*first.values()], [*second.values()])
    return Contrast(seeds, shown, lead, chance)


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
