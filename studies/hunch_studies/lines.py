"""Pictures of estimates over the values of a setting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from hunch.report.curves import COLOURS, blank
from hunch.rl.statistics import Estimate


def draw_lines(
    panels: Mapping[str, Mapping[str, Mapping[int, Estimate]]], path: Path, x: str, y: str
) -> Path:
    """Draw estimates with their intervals over some values of a setting, on a logarithmic scale, as PNG.

    Args:
        panels: The estimate at each value, by title and label.
        path: Path of the picture.
        x: Name of the setting.
        y: Name of the estimate.

    Raises:
        UsageError: if matplotlib is not installed.
    """
    figure = blank(len(panels))
    for axes, (title, lines) in zip(
        figure.subplots(len(panels), squeeze=False)[:, 0], panels.items(), strict=True
    ):
        for (label, line), colour in zip(lines.items(), COLOURS * len(lines), strict=False):
            values = np.array([(e.value, e.low, e.high) for e in line.values()]).T
            axes.plot(list(line), values[0], "o-", color=colour, label=label, linewidth=2, markersize=4)
            axes.fill_between(list(line), values[1], values[2], color=colour, alpha=0.18, linewidth=0)
        axes.set(xlabel=x, ylabel=y, xscale="log")
        axes.set_xticks(ticks := sorted({value for line in lines.values() for value in line}))
        axes.set_xticklabels([f"{tick:,.0f}" for tick in ticks])
        axes.minorticks_off()
        axes.set_title(title, loc="left", fontsize=11)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, metadata={"Software": None})
    return path
