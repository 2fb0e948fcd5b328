"""What a model saves: each arm with a model against each baseline without one, paired by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from hunch.rl.statistics import Estimate, area, first_reached, over_pairs
from hunch.runs.compare import Arm, Outcome, by_arm
from hunch.runs.result import Result


@dataclass(frozen=True)
class Lead:
    """An arm compared with a baseline, over their common seeds.

    Attributes:
        area: Mean difference of the areas under the success curves, with Student's 95 % interval.
        share: Mean ratio of the arm's to the baseline's steps until half of the episodes succeed (see
            :func:`hunch.rl.success.first_reached`), with the same interval. A run that never reached this
            counts with all of its steps; nan if no run of either reached it.
    """

    arm: str
    baseline: str
    seeds: int
    area: Estimate
    share: Estimate

    def __str__(self) -> str:
        needs = "" if isnan(self.share.value) else f"; {self.share.short()} of its steps to half"
        return (
            f"{self.arm} beside {self.baseline}, {self.seeds} pair{'s' * (self.seeds != 1)}: "
            f"lead in area {self.area.short()}{needs}"
        )


def leads(outcomes: Sequence[Outcome]) -> list[Lead]:
    """Return the lead of each arm with a model over each baseline that has a seed in common with it."""
    results = by_arm(outcomes)
    baselines = [arm for arm in results if arm.model == "none"]
    all_leads = [
        _lead(arm, baseline, results[arm], results[baseline])
        for baseline in baselines
        for arm in results
        if arm not in baselines
    ]
    return [lead for lead in all_leads if lead.seeds]


def _lead(arm: Arm, baseline: Arm, results: Mapping[int, Result], others: Mapping[int, Result]) -> Lead:
    pairs = [(results[seed], others[seed]) for seed in results if seed in others]
    halves = [(_half(mine), _half(its), its.requested) for mine, its in pairs]
    reached = any(mine or its for mine, its, _ in halves)
    return Lead(
        arm=arm.label,
        baseline=baseline.label,
        seeds=len(pairs),
        area=over_pairs([_area(mine) - _area(its) for mine, its in pairs]),
        share=over_pairs([(mine or steps) / (its or steps) for mine, its, steps in halves if reached]),
    )


def _area(run: Result) -> float:
    return area(*run.course, run.requested)


def _half(run: Result) -> int | None:
    return first_reached(*run.course, 0.5)
