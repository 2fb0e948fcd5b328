"""``hunch report``: makes a page, a picture and a table from the folders of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hunch.cli import trusted
from hunch.cli.options import read
from hunch.core import UsageError
from hunch.report.curves import Points, draw
from hunch.report.curves import as_csv as curves_as_csv
from hunch.report.gather import Run, collect
from hunch.report.page import page
from hunch.report.table import as_csv, rows
from hunch.runs.compare import Arm
from hunch.runs.files import write_atomically
from hunch.runs.processes import stoppable


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Make a page, a picture and a table from the folders of runs.

    Episodes in an environment of the current folder are replayed with --module NAME, the name of its file.
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """Folders of runs or comparisons."""
    out: Path = Path("report.html")
    """File of the page; a picture and a table with the same name are written next to it."""
    episodes: int = 6
    """Episodes per run that are replayed to explain every action; 0 for none, which asks no model."""
    plain: bool = False
    """Store recorded episodes uncompressed: a larger page, for browsers from before 2023."""


def report(arguments: Sequence[str]) -> None:
    """Write a page (.html), a picture (.png), a table (.csv) and the curves (.curves.csv) about runs."""
    options = read(ReportOptions, prog="hunch report", args=list(arguments))
    if not options.folders:
        raise UsageError("Name folders of runs, as in 'hunch report runs/demo'.")
    if options.out.suffix != ".html":
        raise UsageError(f"--out must be an HTML file, as in 'report.html', not {options.out}.")
    if options.episodes < 0:
        raise UsageError(f"--episodes must not be negative, not {options.episodes}.")
    if not options.out.parent.is_dir():
        raise UsageError(
            f"There is no folder {options.out.parent} for the page: create it, or choose another --out."
        )
    for file in options.folders:
        if file.is_file():
            raise UsageError(
                f"{file} is a file: name the folder of a run or a comparison, as in 'runs/demo'."
            )
    with stoppable("stopped before all files were written; the same command makes them again."):
        _write(options)


def _write(options: ReportOptions) -> None:
    """Read the runs, and write the page, the tables and the picture."""
    comparisons, left_out = collect(options.folders)
    count = sum(len(runs) for comparison in comparisons for runs in comparison.arms.values())
    print(f"{count} runs: replaying their episodes, asking their agents ...", flush=True)
    number = iter(range(1, count + 1))
    without_texts: dict[str, list[str]] = {}
    text = page(
        comparisons,
        left_out,
        episodes=options.episodes,
        plain=options.plain,
        watch=lambda run: print(f"{next(number)} of {count}: {run.name}", flush=True),
        missing=lambda run, reason: without_texts.setdefault(_with_advice(run, reason), []).append(run.name),
    )
    table = [row for comparison in comparisons for row in rows(comparison.outcomes)]
    write_atomically(options.out, text.encode())
    write_atomically(options.out.with_suffix(".csv"), as_csv(table).encode())
    for each in left_out:
        print(f"left out: {each.name}: {each.reason}")
    for reason, names in without_texts.items():
        which = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        print(f"without the texts of its episodes: {which}: {reason}")
    panels = {
        comparison.title: {arm: [run.points for run in runs] for arm, runs in comparison.arms.items()}
        for comparison in comparisons
    }
    curves = options.out.with_suffix(".curves.csv")
    write_atomically(curves, curves_as_csv(panels).encode())
    print(
        f"Page: {options.out}, {len(text) / 1e6:.1f} MB. Table: {options.out.with_suffix('.csv')}. "
        f"Curves: {curves}."
    )
    print(_picture(panels, options.out.with_suffix(".png")))


def _with_advice(run: Run, reason: str) -> str:
    """Return why a run's episodes cannot be replayed, and what to do."""
    return reason + trusted.admission(run.config.env.partition(":")[0])


def _picture(panels: dict[str, dict[Arm, list[Points]]], path: Path) -> str:
    try:
        return f"Picture: {draw(panels, path)}."
    except UsageError as error:
        return f"No picture: {error}"
