"""The short table of a comparison."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hunch.rl.statistics import Estimate, over_seeds
from hunch.runs.compare import Arm, Outcome
from hunch.runs.result import Result


@dataclass(frozen=True)
class Row:
    """One arm of a comparison over its seeds.

    Attributes:
        success: Success rate in the last quarter of the steps: interquartile mean over seeds, 95 %
            bootstrap interval.
        steps_to_half: Median over seeds of the steps until half of the last 50 episodes succeeded; None if
            fewer than half of the seeds got there.
        calls: Model calls over all seeds, with those answered from the cache apart as ``hits``.
    """

    label: str
    model: str
    evidence: str
    seeds: int
    steps: int
    success: Estimate
    steps_to_half: int | None
    calls: int
    hits: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The row with plain values, for JSON and CSV."""
        s = self.success
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "success"}
        return {**plain, "success": s.value, "success_low": s.low, "success_high": s.high}


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """One row an arm, in the order of the comparison; arms of which no run ended are left out."""
    by_arm: dict[Arm, list[Result]] = {}
    for outcome in outcomes:
        if outcome.result:
            by_arm.setdefault(outcome.job.arm, []).append(outcome.result)
    return [_row(arm, results) for arm, results in by_arm.items()]


def _row(arm: Arm, results: Sequence[Result]) -> Row:
    from hunch import methods

    reached = [result.steps_to(0.5) for result in results]
    informed = methods.find(arm.config.method).verbs
    return Row(
        label=arm.label,
        model=arm.config.lm if informed else "none",
        evidence=results[0].evidence,
        seeds=len(results),
        steps=results[0].steps,
        success=over_seeds([result.success.value for result in results]),
        steps_to_half=_median_reached(reached),
        calls=int(sum(result.usage.get("calls", 0) for result in results)),
        hits=int(sum(result.usage.get("cache_hits", 0) for result in results)),
        seconds=sum(result.seconds for result in results),
    )


def _median_reached(steps: Sequence[int | None]) -> int | None:
    median = float(np.median([np.inf if step is None else step for step in steps]))
    return int(median) if np.isfinite(median) else None


def as_csv(table: Sequence[Row]) -> str:
    """The table as comma-separated values with a header."""
    text = io.StringIO()
    records = [row.as_dict() for row in table]
    writer = csv.DictWriter(text, fieldnames=list(records[0]) if records else [])
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()
