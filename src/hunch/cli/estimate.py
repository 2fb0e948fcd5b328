"""``--dry-run``: estimates the model calls of runs, as a table with its assumptions."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from hunch.runs.estimate import FIGURES, Estimate, assumptions, estimates, wall_time
from hunch.runs.resolve import Resolved

_HEADS = ("model\ncalls", "cache\nhits", "tokens\nread", "tokens\nwritten", "cost")
HEADINGS = dict(zip(FIGURES, _HEADS, strict=True))


def dry_run(labels: Sequence[str], listed: Sequence[Resolved], seeds: int = 1) -> None:
    """Estimate runs and print their model calls; no model is asked and no folder is changed."""
    estimated = estimates(listed)
    names = [name for name in FIGURES if name != "cost" or any(e.bound["cost"] for e in estimated)]
    grid = Table(title="dry run", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "", *(HEADINGS[name] for name in names)):
        grid.add_column(heading, justify="right" if heading else "left", no_wrap=bool(heading))
    for label, e in zip(labels, estimated, strict=True):
        _rows(grid, label, e, names, seeds)
    if len(estimated) > 1:
        for kind in KINDS:
            figures = [getattr(e, kind) for e in estimated]
            total = {name: sum(each[name] for each in figures) for name in names}
            grid.add_row("all" if kind == "expected" else "", SAYS[kind], *_cells(total, names, seeds))
    console = Console()
    console.print(grid, markup=False)
    for sentence in (wall_time(estimated, seeds), *assumptions(estimated[0], listed[0].config, seeds)):
        console.print(f"- {sentence}", markup=False, highlight=False)


KINDS = ("expected", "bound")
SAYS = {"expected": "expected", "bound": "at most"}


def _rows(grid: Table, label: str, e: Estimate, names: Sequence[str], seeds: int) -> None:
    grid.add_row(label, f"in {e.sampled:,} steps", *_cells(e.sample, names, 1))
    for kind in KINDS:
        grid.add_row("", SAYS[kind], *_cells(getattr(e, kind), names, seeds))


def _cells(figures: dict[str, float], names: Sequence[str], seeds: int) -> list[str]:
    return [f"{seeds * figures[name]:,.{4 if name == 'cost' else 0}f}" for name in names]
