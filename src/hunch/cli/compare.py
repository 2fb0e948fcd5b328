"""``hunch compare``: methods side by side, with a control, a table and a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from hunch import methods
from hunch.cli import help
from hunch.cli.estimate import dry_run
from hunch.cli.help import Option
from hunch.cli.options import (
    Limits,
    default_folder,
    options_of,
    parse,
    run_config,
    split_environment,
    split_shared,
)
from hunch.cli.run import MORE
from hunch.core import HunchError, UsageError
from hunch.envs import make
from hunch.methods import Method
from hunch.report.curves import draw_curves
from hunch.report.table import Row, rows, verdict, write
from hunch.runs import cluster
from hunch.runs.board import PROJECT
from hunch.runs.build import build
from hunch.runs.compare import Arm, Job, Outcome, arms, jobs, refuse_others, refuse_run
from hunch.runs.compare import compare as compare_runs
from hunch.runs.config import Setting, check
from hunch.runs.progress import JobBars


@dataclass(frozen=True, kw_only=True)
class CompareOptions(Setting):
    """Where the runs take place, and where they are kept."""

    seeds: int = 3
    """Runs per method, with seeds 0, 1, 2 ...; all methods share them."""
    control: bool = True
    """Add the same loop with an uninformed model in the role, for each method that has a role, and with a bag
    of words where its prior goes by similarity."""
    workers: int | None = None
    """Runs at a time. Default: the processors at hand."""
    on: Literal["here", "ray"] = "here"
    """Where the runs are done: in processes of this machine, or on a Ray cluster."""
    out: Path | None = None
    """Folder of the comparison. Default: a folder under runs/ named after these options."""
    budget: Limits = field(default_factory=Limits)
    """How much all runs together may ask of language models, over all sittings."""
    wandb: str = ""
    """Project of Weights & Biases to log to as well; needs the package and a login there."""
    dry_run: bool = False
    """Only estimate what the runs would ask of language models; none is asked."""


def compare(arguments: Sequence[str]) -> None:
    """Train several methods with paired seeds; the same command goes on where it was stopped."""
    names = list(takewhile(lambda token: not token.startswith("-"), arguments))
    if help.wants_help(arguments):
        return _help([methods.find(name) for name in names], arguments)
    if not names:
        raise UsageError("Name the methods to compare, as in 'hunch compare dqn dqn-prior'.")
    found = [methods.find(name) for name in names]
    rest, env_options = split_environment(arguments[len(names) :])
    rest = split_shared(rest, found)
    parts = {"where_": CompareOptions, **{m.name.replace("-", "_"): options_of(m) for m in found}}
    parsed = parse(f"compare {' '.join(names)}", "methods side by side, with paired seeds", parts, rest)
    where: CompareOptions = parsed.where_
    if where.lm and not any(m.takes_lm for m in found):
        raise UsageError(f"None of {', '.join(names)} asks a language model; leave --lm out.")
    configs = [
        run_config(
            m.name,
            where if m.takes_lm else replace(where, lm=""),  # the others of the comparison ask it
            env_options,
            getattr(parsed, m.name.replace("-", "_")),
        )
        for m in found
    ]
    listed = arms(configs, control=where.control)
    out = where.out or default_folder(configs, where.control)
    todo = jobs(listed, max(1, where.seeds), out)
    refuse_run(out)
    refuse_others(todo)
    _check(listed, where)
    if where.dry_run:
        return dry_run([arm.label for arm in listed], [arm.config for arm in listed], where.seeds)
    if where.wandb:
        os.environ[PROJECT] = where.wandb
    try:
        outcomes = _watch(todo, where)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; what was running is saved in {out}, and the same command goes on from there."
        ) from None
    title = f"{where.env.removeprefix('hunch/')}, {where.steps:,} steps, {where.seeds} seeds"
    _conclude(outcomes, out, title)


def _help(found: Sequence[Method], arguments: Sequence[str]) -> None:
    """Print the common options, those that several methods share, and each method's others."""
    names = " ".join(method.name for method in found) or "METHOD METHOD..."
    usage = f"hunch compare {names} --env ID [options]"
    groups: dict[str, Sequence[Option]] = dict(help.common(CompareOptions))
    own = {method.name: help.of_method(method) for method in found}
    shared = {o.flag: o for a in own for o in own[a] if any(o in own[b] for b in own if b != a)}
    groups["Options that several methods share (--METHOD.NAME VALUE for one of them)"] = list(shared.values())
    for name, listed in own.items():
        groups[f"Further options of {name}"] = [o for o in listed if shared.get(o.flag) != o]
    help.show(usage, str(compare.__doc__), groups, arguments)
    if not found:
        help.lines(Console(highlight=False), "METHOD is one of", help.method_lines())


def _check(listed: Sequence[Arm], where: CompareOptions) -> None:
    """Refuse what no run could do, before the first one starts."""
    for name in ("seeds", "workers"):
        if (value := getattr(where, name)) is not None and value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}.")
    budget = where.budget.budget()
    if where.on == "ray" and (where.workers is not None or where.budget):
        raise UsageError(
            "--workers and --budget are counted on one machine: with --on ray there can be none."
        )
    for arm in listed:
        check(arm.config)
    make(where.env, **listed[0].config.env_options)
    models = [model for arm in listed for model in build(arm.config)[1].values()]
    budget.check_prices(models)


def _watch(todo: Sequence[Job], where: CompareOptions) -> list[Outcome]:
    with JobBars(todo) as bars:
        if where.on == "ray":
            return cluster.compare(todo, watch=bars.follow)
        budget = where.budget.budget()
        return compare_runs(todo, workers=where.workers, budget=budget, watch=bars.follow)


def _conclude(outcomes: Sequence[Outcome], out: Path, title: str) -> None:
    """Write table and picture, print both, and end with the failures, if any."""
    table = rows(outcomes)
    if table:
        write(table, out)
        Console().print(_render(table, title))
        print("".join(f"Verdict: {line}.\n" for line in verdict(table)), end="")
        done = [outcome.job for outcome in outcomes if outcome.result]
        print(f"Picture: {draw_curves(done, out / 'curves.png', title)}")
    failed = [outcome for outcome in outcomes if outcome.result is None]
    for outcome in failed:
        word = "stopped" if outcome.stopped else "failed"
        print(f"{word}: {outcome.job.arm.label}, seed {outcome.job.seed}: {outcome.reason}")
    if failed and all(outcome.stopped for outcome in failed):
        raise HunchError(f"{len(failed)} of {len(outcomes)} runs were stopped by the budget. {MORE}")
    if failed:
        raise HunchError(f"{len(failed)} of {len(outcomes)} runs failed; the same command tries them again.")


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
    spread = "range" if any(row.success.range_of for row in table) else "95 %"
    grid.add_column("method")
    grid.add_column("model")
    grid.add_column(rf"success \[{spread}]", justify="right", no_wrap=True)
    for heading in ("half at", *roles, "calls"):
        grid.add_column(heading, justify="right")
    for row in table:
        half = "never" if row.steps_to_half is None else f"{row.steps_to_half:,}"
        asked = (f"{row.requests[role]:,}" if role in row.requests else "-" for role in roles)
        counts = (row.success.short(), half, *asked, f"{row.calls:,}")
        grid.add_row(row.label, f"{row.model} {row.evidence}", *counts)
    return grid


CAPTION = (
    "L0 to L3: evidence level. success: episodes of the last quarter of the steps; interquartile mean over "
    "seeds, bootstrap interval, below five seeds their range. half at: steps until half of 50 episodes "
    "succeeded, and half of the 50 after them, median over seeds. Below a role: its requests over all "
    "seeds, from the cache or not; calls: those that reached a model. beats: rank-sum test over seeds, p <= "
    "0.05, below five seeds all of one above all of the other; a no says that it was not shown."
)
