"""The summary table of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from hunch import methods
from hunch.lm.settings import SILENT
from hunch.lm.usage import Usage
from hunch.printable import printable
from hunch.report import cells
from hunch.report.curves import searches
from hunch.rl.statistics import FEWEST, Contrast, Estimate, area, contrast, first_reached, over_seeds
from hunch.runs.compare import BLANK, Arm, Outcome, by_arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import write_atomically
from hunch.runs.result import Result, last_quarter, mean_return

SILENCE = "{0.label}: {0.silent:,} unusable answers in series of {1} or more: it says less about {0.model}"
COUNTED = {entry.name for entry in fields(Usage)}


@dataclass(frozen=True)
class Row:
    """One method or control of a comparison, summarised over its seeds.

    Attributes:
        success: Success rate in the last quarter of the steps: interquartile mean over the seeds in which an
            episode ended there, with 95 % bootstrap interval; below five seeds their range.
        returns: Mean return of the same episodes, with the same statistics.
        area: Area under the success curve, with the same statistics; see :func:`hunch.rl.statistics.area`.
        steps_to_half: Median over seeds of the steps until half of 50 episodes succeeded, and half of the 50
            after them; None if fewer than half of the seeds reached it.
        by_seed: Success rate of each seed.
        best: In a search for programs, the fitness of each seed's best program, with the same statistics as
            the success; else None. The verdict then compares these.
        best_by_seed: Fitness of the best program of each seed, nan if all failed.
        requests: Requests over all seeds, cached or not, by the role of the model.
        calls: Requests over all seeds that reached a model; ``hits`` are those that a cache answered.
        tokens: Tokens that the model read and wrote, over all seeds.
        seconds: Wall time over all seeds; ``model_seconds`` is the part in models.
        others: Other usage of models, such as cost.
        silent: Useless answers in series of 20 or more.
    """

    label: str
    environment: str
    model: str
    evidence: str
    seeds: int
    steps: int
    success: Estimate
    returns: Estimate
    area: Estimate
    steps_to_half: int | None
    by_seed: dict[int, float]
    requests: dict[str, int]
    calls: int
    hits: int
    tokens: int
    model_seconds: float
    seconds: float
    others: dict[str, float] = field(default_factory=dict)
    silent: int = 0
    best: Estimate | None = None
    best_by_seed: dict[int, float] = field(default_factory=dict)

    @property
    def score(self) -> Estimate:
        """What the verdict compares: the success, or the fitness of the best program in a search."""
        return self.best or self.success

    @property
    def measure(self) -> str:
        """The name of the score: ``success`` or ``best program``."""
        return "best program" if self.best else "success"

    def as_dict(self) -> dict[str, Any]:
        """Return the row with plain values, for JSON and CSV."""
        plain: dict[str, Any] = {}
        searched = ("best", "best_by_seed")
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name in searched and not self.best:
                continue
            if isinstance(value, Estimate):
                plain[entry.name] = value.value
                plain |= {f"{entry.name}_{end}": getattr(value, end) for end in ("low", "high", "range_of")}
            else:
                plain |= value if entry.name == "others" else {entry.name: value}
        plain |= {f"requests, {role}": n for role, n in plain.pop("requests").items()}
        return plain


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """Return one row per arm, in the order of the comparison; arms without a finished run are left out."""
    return [_row(arm, by_seed) for arm, by_seed in by_arm(outcomes).items()]


def _row(arm: Arm, results_by_seed: Mapping[int, Result]) -> Row:
    results = list(results_by_seed.values())
    courses = [result.course for result in results]
    by_seed = {seed: result.success.value for seed, result in results_by_seed.items()}
    searched = searches(arm)
    best_by_seed = {seed: result.best for seed, result in results_by_seed.items()} if searched else {}

    def total(*names: str) -> float:
        return sum(result.usage.get(name, 0) for result in results for name in names)

    return Row(
        label=arm.label,
        environment=place(arm.config),
        model=arm.model,
        evidence=results[0].evidence or "-",
        seeds=len(results),
        steps=results[0].steps,
        success=over_seeds(_known(by_seed.values())),
        returns=over_seeds(_known(map(final_return, results))),
        area=over_seeds(
            [area(*course, result.requested) for course, result in zip(courses, results, strict=True)]
        ),
        steps_to_half=_median_reached([first_reached(*course, 0.5) for course in courses]),
        by_seed=by_seed,
        requests=requests(arm.config, [result.models for result in results]),
        calls=int(total("calls")),
        hits=int(total("cache_hits")),
        tokens=int(total("prompt_tokens", "completion_tokens")),
        model_seconds=round(total("seconds"), 3),
        seconds=round(sum(result.seconds for result in results), 3),
        silent=int(total("silent")),
        best=over_seeds(_known(best_by_seed.values())) if searched else None,
        best_by_seed=best_by_seed,
        others={name: total(name) for result in results for name in result.usage if name not in COUNTED},
    )


def _known(values: Iterable[float]) -> list[float]:
    """Return values without nan: those of the runs in which an episode ended, or a program ran."""
    return [value for value in values if not isnan(value)]


def requests(config: RunConfig, models: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, int]:
    """Return requests, including cached ones, by the role that the model fills."""
    roles = () if "agent" in config.objects else methods.find(config.method).roles
    named = dict(zip(("lm", "policy_lm"), roles, strict=False))
    by_role: dict[str, int] = {}
    for name, usage in (item for run in models for item in run.items()):
        role, asked = named.get(name, name), int(usage.get("calls", 0) + usage.get("cache_hits", 0))
        by_role[role] = by_role.get(role, 0) + asked
    return by_role


def final_return(result: Result) -> float:
    """Return the mean return of episodes that ended in the last quarter of the steps; nan if none did."""
    quarter = last_quarter(result.episodes or result.evaluations, result.requested)
    return mean_return(quarter).get("return", float("nan")) if quarter else float("nan")


def verdict(table: Sequence[Row]) -> list[str]:
    """Return sentences that say which methods are shown to be better than which.

    Each method whose model fills a role, except controls, is compared with every other method; if there
    are only rules and controls, these are compared. There are three verdicts, by
    :func:`hunch.rl.statistics.contrast`: *shown* if Student's two-sided 95 % interval of the lead, paired by
    seed, is above 0; *not shown*, which does not mean that the methods are equal; and *cannot be shown here*,
    with what is missing: pairs of seeds, room above the other method, or any success. The lead is one in
    success; in a search for programs, one in the fitness of the best. A control is named without its method.
    A model with many useless answers is named in a sentence. If no two methods have enough seeds in common,
    one sentence says so and what each has, best first.
    """
    with_model = [row for row in table if row.model not in ("none", "uniform")]
    informed = [row for row in with_model if not row.label.endswith(BLANK)]
    real = [row for row in informed if row.evidence != "L0"]
    contrasts = {
        row.label: {other.label: _over(row, other) for other in table if other is not row}
        for row in real or informed
    }
    pairs = [each.pairs for row in contrasts.values() for each in row.values()]
    lines = []
    if pairs and max(pairs) < FEWEST:
        lines.append(_no_verdict(table, max(pairs)))
    else:
        for row in real or informed:
            said = [f"over {label}: {each}" for label, each in contrasts[row.label].items()]
            lines += [f"{row.label} ({row.evidence}) {'; '.join(said)}"] if said else []
    return lines + [SILENCE.format(row, SILENT) for row in table if row.silent]


def _no_verdict(table: Sequence[Row], pairs: int) -> str:
    """Return the sentence for a comparison with too few seeds; ``pairs`` is the most that two arms share."""
    shared = f"{pairs} seed{'s' * (pairs != 1)} in common"
    best_first = sorted(table, key=lambda row: -np.nan_to_num(row.score.value, nan=-np.inf))
    scores = "; ".join(f"{row.label} ({row.evidence}) {row.score.short()}" for row in best_first)
    measure = table[0].measure.capitalize()
    return f"none from {shared}, {FEWEST} are needed (--seeds {FEWEST}). {measure}, best first: {scores}"


def _over(row: Row, other: Row) -> Contrast:
    if row.best:
        return contrast(row.best_by_seed, other.best_by_seed)
    return contrast(row.by_seed, other.by_seed, best=1.0)


def place(config: RunConfig) -> str:
    """Return the environment with its options as text, in one line."""
    options = ", ".join(f"{name}={value}" for name, value in sorted(config.env_options.items()))
    return f"{config.env} ({options})" if options else config.env


def _median_reached(steps: Sequence[int | None]) -> int | None:
    """Return the median; of exactly half that were reached, the last one; None if fewer were."""
    ordered = sorted(np.inf if step is None else step for step in steps)
    lower, upper = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if np.isinf(lower):
        return None
    return int(lower if np.isinf(upper) else (lower + upper) / 2)


def write(table: Sequence[Row], folder: Path) -> None:
    """Write ``table.csv``, ``table.json`` and ``verdict.txt`` to a folder, which is created if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    verdicts = "".join(f"{printable(line)}\n" for line in verdict(table))
    write_atomically(folder / "verdict.txt", verdicts.encode())
    write_atomically(folder / "table.csv", as_csv(table).encode())
    write_atomically(folder / "table.json", json.dumps([row.as_dict() for row in table], indent=2).encode())


def as_csv(table: Sequence[Row]) -> str:
    """Return the table as comma-separated values with a header."""
    records = [row.as_dict() for row in table]
    names = dict.fromkeys(name for record in records for name in record)
    return cells.as_csv(list(names), records)
