"""A plot of predicted probabilities against success rates, in bins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hunch.extras import library
from hunch.report.curves import COLOURS
from hunch.rl.calibration import Bin
from hunch.rl.statistics import over_episodes


def draw_reliability(bins: Sequence[Bin], path: Path, title: str) -> Path:
    """Draw bins of predicted probabilities against success rates, and save them as PNG.

    A bar is the 95 % Wilson interval of a success rate, and the number next to it counts its episodes. On the
    diagonal, prediction and success rate agree.

    Raises:
        UsageError: if matplotlib is not installed.
    """
    matplotlib = library("matplotlib.figure", "Pictures need matplotlib", "plot")
    figure = matplotlib.Figure(figsize=(5.4, 5.0), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], "--", color="0.6", linewidth=1)
    for told, came, n in bins:
        shares = over_episodes([i < round(came * n) for i in range(n)])
        reach = [[max(0.0, came - shares.low)], [max(0.0, shares.high - came)]]
        axes.errorbar(told, came, reach, fmt="o", color=COLOURS[0], capsize=3)
        right = told < 0.85
        axes.annotate(
            f"{n:,}",
            (told, came),
            xytext=(8 if right else -8, -12 if came > 0.5 else 6),
            textcoords="offset points",
            ha="left" if right else "right",
            fontsize=9,
        )
    axes.set(xlabel="predicted probability", ylabel="success rate", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    axes.set_title(title, loc="left", fontsize=11)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Software": None})
    return path
