"""Runs the methods of a comparison and their controls, and prints the table, the verdict and the picture."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from hunch.cli.comparison import CompareOptions
from hunch.cli.estimate import dry_run
from hunch.cli.options import budget_of, default_folder
from hunch.cli.run import MORE
from hunch.core import HunchError, UsageError
from hunch.lm.answers.rehearsal import Rehearsal
from hunch.report.curves import draw_curves
from hunch.report.lead import leads
from hunch.report.table import Row, rows, verdict, write
from hunch.rl.dataset import as_episodes
from hunch.rl.rollout import TextEnvironment
from hunch.runs import cluster
from hunch.runs.compare import Job, Outcome, arms, jobs, prepared, refuse_others, refuse_run, unfinished
from hunch.runs.compare import compare as compare_runs
from hunch.runs.config import RunConfig
from hunch.runs.data import recorded, require_recorded
from hunch.runs.environments import require_fit
from hunch.runs.idle import too_short
from hunch.runs.loading import parts_of
from hunch.runs.models import Asked, Join, Loaded, Outlined
from hunch.runs.progress import Bars, note
from hunch.runs.resolve import Resolved


def run(configs: Sequence[RunConfig], where: CompareOptions) -> None:
    """Run methods and their controls, or resume those that are unfinished, and print the results.

    Args:
        configs: The settings of each requested method, without the controls.
        where: The options of the command.

    Raises:
        UsageError: if the settings do not fit together, or the folder holds another comparison.
        HunchError: if runs failed or were stopped by the budget.
    """
    listed = arms(configs, control=where.control, blank=where.blank_control)
    controls = [where.control, "blank prompt"] if where.blank_control else where.control
    out = where.out or default_folder(configs, controls)
    todo = jobs(listed, max(1, where.seeds), out, where.board)
    refuse_run(out)
    refuse_others(todo)
    _check(where)
    resolved = [job.resolved for job in todo[: len(listed)]]  # of the first seed
    env = _environment(resolved)
    left = unfinished(todo)
    ray = None
    if left and not where.dry_run:
        if where.on == "ray":
            ray = cluster.connect()
        else:
            prepared(left)  # while the models are checked here, so that what cannot be loaded is refused
    if left:
        _check_models(resolved, where, env, Rehearsal() if where.dry_run else Outlined())
    if where.dry_run:
        return dry_run([arm.label for arm in listed], resolved, where.seeds)
    try:
        outcomes = _watch(todo, where, ray)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; the runs are saved in {out}, and the same command continues them."
        ) from None
    runs = f"{where.seeds} seed{'s' * (where.seeds != 1)}"
    title = f"{where.env.removeprefix('hunch/')}, {where.steps:,} steps, {runs}"
    _conclude(outcomes, out, title)


def _check(where: CompareOptions) -> None:
    """Check the options that single runs do not have."""
    for name in ("seeds", "workers"):
        value = getattr(where, name)
        if value is not None and value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}.")
    budget_of(where.budget)
    if where.on == "ray" and (where.workers is not None or where.budget or where.board):
        raise UsageError(
            "--workers, --budget and --board work on one machine only: leave them out with --on ray."
        )


def _environment(listed: Sequence[Resolved]) -> TextEnvironment:
    """Return an environment of the comparison, after comparing it and the data with every method."""
    data = recorded(listed[0].config)
    (env,) = listed[0].environments()
    for resolved in listed:
        if resolved.method:
            require_fit(resolved.method, env)
            if resolved.config.offline and data:
                require_recorded(resolved.method, as_episodes(data))
    return env


def _check_models(
    listed: Sequence[Resolved], where: CompareOptions, env: TextEnvironment, join: Join
) -> None:
    """Make the agents of all arms, check that a budget fits their models, and say which arms learn nothing.

    Args:
        listed: The arms.
        where: The options of the command.
        env: The environment.
        join: Makes the models, as far as that is needed here.
    """
    loaded = Loaded()
    asked = []
    sentences = []
    for resolved in listed:
        agent, models = resolved.build(join, loaded=loaded, parts=parts_of(resolved.config))
        asked.append(Asked(agent, models, [env]))
        sentences.append(too_short(agent, resolved.config))
    for sentence in dict.fromkeys(filter(None, sentences)):  # arms that differ in a model say the same
        print(f"hunch: {sentence}", file=sys.stderr)
    budget = budget_of(where.budget)
    if budget:
        budget.check_prices([model for each in asked for _, model in each])


def _watch(todo: Sequence[Job], where: CompareOptions, ray: Any) -> list[Outcome]:
    """Execute what is unfinished, on the cluster if there is a connection to one."""
    with JobBars(todo) as bars:
        if ray is not None:
            return cluster.compare(todo, ray, watch=bars.follow)
        budget = budget_of(where.budget)
        return compare_runs(todo, workers=where.workers, budget=budget, watch=bars.follow)


def _conclude(outcomes: Sequence[Outcome], out: Path, title: str) -> None:
    """Write table and picture, print them, and raise an error if runs failed."""
    table = rows(outcomes)
    if table:
        write(table, out)
        Console().print(_render(table, title))
        for line in verdict(table):
            _print_sentence(f"Verdict: {line}.")
        if table[0].best is None:  # the lead is one of the success
            for lead in leads(outcomes):
                _print_sentence(f"Lead: {lead}.")
        done = [outcome.job for outcome in outcomes if outcome.result]
        print(f"Picture: {draw_curves(done, out / 'curves.png', title)}")
    failed = [outcome for outcome in outcomes if outcome.result is None]
    for outcome in failed:
        word = "stopped" if outcome.stopped else "failed"
        print(f"{word}: {outcome.job.arm.label}, seed {outcome.job.seed}: {outcome.reason}")
    if failed and all(outcome.stopped for outcome in failed):
        raise HunchError(f"{len(failed)} of {len(outcomes)} runs were stopped by the budget. {MORE}")
    if failed:
        raise HunchError(f"{len(failed)} of {len(outcomes)} runs failed; the same command retries them.")


def _print_sentence(sentence: str) -> None:
    """Print a sentence: on a terminal folded between words, elsewhere as one line."""
    console = Console(highlight=False)
    console.print(sentence, markup=False, emoji=False, soft_wrap=not console.is_terminal)


class JobBars(Bars):
    """Progress bars of a comparison: one per method, over all its seeds."""

    def __init__(self, todo: Sequence[Job]) -> None:
        self.jobs: dict[str, list[Job]] = {}
        for job in todo:
            self.jobs.setdefault(job.arm.label, []).append(job)
        total = max(sum(job.config.steps for job in jobs_of_arm) for jobs_of_arm in self.jobs.values())
        super().__init__(list(self.jobs), total, "waiting for a processor")

    def follow(self, lines: Mapping[Job, dict[str, Any]]) -> None:
        """Update the bars with the latest line of metrics of each run."""
        done: dict[str, int] = {}
        notes: dict[str, str] = {}
        for label, jobs_of_arm in self.jobs.items():
            latest = [lines[job] for job in jobs_of_arm if job in lines]
            if latest:
                done[label] = sum(line.get("step", 0) for line in latest)
                notes[label] = note([line for line in latest if line])
        self.show(done, notes)


def _render(table: Sequence[Row], title: str) -> Table:
    grid = Table(
        title=title,
        title_justify="left",
        caption=CAPTION,
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    roles = list(dict.fromkeys(role for row in table for role in row.requests))
    spread = "range" if any(row.score.range_of for row in table) else "95 %"
    halves = table[0].best is None  # a search has no success whose half could be reached
    grid.add_column("method", overflow="fold")
    grid.add_column("model", overflow="fold")
    grid.add_column(rf"{table[0].measure} \[{spread}]", justify="right", no_wrap=True)
    for heading in (*(["half at"] if halves else []), *roles, "calls"):
        grid.add_column(heading, justify="right")
    for row in table:
        half = "never" if row.steps_to_half is None else f"{row.steps_to_half:,}"
        asked = (f"{row.requests[role]:,}" if role in row.requests else "-" for role in roles)
        counts = (row.score.short(), *([half] if halves else []), *asked, f"{row.calls:,}")
        grid.add_row(row.label, f"{row.model} {row.evidence}", *counts)
    return grid


CAPTION = (
    "L0 to L3: evidence level. success: success rate in the last quarter of the steps, interquartile mean "
    "over seeds with bootstrap interval (range below five seeds); best program: its fitness, in the same "
    "way. half at: steps until half of 50 episodes, "
    "and half of the next 50, succeeded, median over seeds. Under a role: its requests over all seeds, "
    "cached or not; calls: requests that reached a model. Verdict: shown if the 95 % interval of the lead, "
    "paired by seed, is above 0; not shown does not mean equal; cannot be shown here: too few seeds, or no "
    "room above the other arm."
)
