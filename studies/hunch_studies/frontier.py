"""Draws the advantage of a loop over its control at several repair and break rates of the writer."""

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
    """Draw the advantage of a loop by the writer's rates, as PNG; a bold edge marks an interval without 0.

    Args:
        cells: The difference with its interval, by repair and break rate.
        marks: Writers whose rates are known, by name.
        path: Path of the picture.
        what: Name of the quantity whose difference is drawn.

    Raises:
        UsageError: if matplotlib is not installed.
    """
    picture = blank(1)
    axes = picture.subplots()
    most = max(0.5, *(abs(cell.value) for cell in cells.values()))
    for (repair, damage), cell in cells.items():
        apart = cell.low > 0 or cell.high < 0
        shade = axes.scatter(
            repair,
            damage,
            s=2200,
            c=[cell.value],
            cmap="PuOr",
            vmin=-most,
            vmax=most,
            edgecolors="black",
            linewidths=2.5 if apart else 0.4,
        )
        told = f"{cell.value:+.2f}\n[{cell.low:.2f},\n{cell.high:.2f}]"
        axes.annotate(told, (repair, damage), ha="center", va="center", fontsize=7)
    for name, (repair, damage) in marks.items():
        axes.plot(repair, damage, "x", color="black", markersize=6)
        place = (4, -12) if damage < 0.05 else (4, 25)
        axes.annotate(name, (repair, damage), place, textcoords="offset points", fontsize=7)
    axes.set(xlabel="repair rate of the writer", ylabel="break rate of the writer", xlim=(-0.1, 1.2))
    axes.set_ylim(-0.1, 0.1 + max(damage for _, damage in (*cells, *marks.values())))
    axes.spines[["top", "right"]].set_visible(False)
    picture.colorbar(shade, ax=axes, label=what)
    picture.savefig(path, metadata={"Software": None})
    return path
