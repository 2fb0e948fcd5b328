"""From which rates of repair and damage on a loop pays: a picture of what it is ahead by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hunch.report.curves import blank
from hunch.rl.statistics import Estimate


def draw_frontier(
    cells: Mapping[tuple[float, float], Estimate],
    marks: Mapping[str, tuple[float, float]],
    path: Path,
    what: str,
) -> Path:
    """Draw what a loop is ahead by over a writer's rates, as PNG; an interval apart from 0 has a bold edge.

    Args:
        cells: By repair and break rate, the difference with its interval.
        marks: Writers whose rates are known, by name.
        path: Of the picture.
        what: What the difference is of.

    Raises:
        UsageError: if matplotlib is not installed.
    """
    picture = blank(1)
    axes = picture.subplots()
    most = max(0.1, *(abs(cell.value) for cell in cells.values()))
    for (repair, damage), cell in cells.items():
        apart = cell.low > 0 or cell.high < 0
        shade = axes.scatter(
            repair,
            damage,
            s=1500,
            c=[cell.value],
            cmap="PuOr",
            vmin=-most,
            vmax=most,
            edgecolors="black",
            linewidths=2.5 if apart else 0.4,
        )
        axes.annotate(f"{cell.value:+.2f}", (repair, damage), ha="center", va="center", fontsize=8)
    for name, (repair, damage) in marks.items():
        axes.plot(repair, damage, "x", color="black", markersize=6)
        axes.annotate(name, (repair, damage), (5, 14), textcoords="offset points", fontsize=7, rotation=20)
    axes.set(xlabel="repair rate of the writer", ylabel="break rate of the writer", xlim=(-0.1, 1.2))
    axes.set_ylim(-0.1, 0.1 + max(damage for _, damage in (*cells, *marks.values())))
    axes.spines[["top", "right"]].set_visible(False)
    picture.colorbar(shade, ax=axes, label=what)
    picture.savefig(path, metadata={"Software": None})
    return path
