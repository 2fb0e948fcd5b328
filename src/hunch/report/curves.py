"""Learning curves as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.rl.statistics import interquartile_mean
from hunch.runs.compare import Arm, Job, curve

# Okabe and Ito's palette, which readers with any colour vision tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

FEWEST = 10
"""Episodes a running success rate is taken over before it is drawn."""


def draw_curves(todo: Sequence[Job], path: Path, title: str) -> Path:
    """Draw the success rate over environment steps, one line an arm, and save it as PNG.

    The line is the interquartile mean over seeds, the band its 95 % bootstrap interval.

    Raises:
        UsageError: if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise UsageError("Pictures need matplotlib: pip install 'hunch-rl[plot]'.") from error
    figure = Figure(figsize=(7.2, 4.4), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    arms = list(dict.fromkeys(job.arm for job in todo))
    for arm, colour in zip(arms, COLOURS * len(arms), strict=False):
        _draw_arm(axes, arm, [job.folder for job in todo if job.arm == arm], colour)
    axes.set(xlabel="environment steps", ylabel="success, last 50 episodes", ylim=(-0.02, 1.02))
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlim(0, max(job.config.steps for job in todo))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    figure.savefig(path)
    return path


def _draw_arm(axes: object, arm: Arm, folders: Sequence[Path], colour: str) -> None:
    curves = [curve(folder, "success", FEWEST) for folder in folders]
    curves = [(steps, values) for steps, values in curves if steps]
    if not curves:
        return
    grid = np.linspace(max(steps[0] for steps, _ in curves), min(steps[-1] for steps, _ in curves), 200)
    values = np.array([np.interp(grid, steps, v) for steps, v in curves])
    model = "no model" if arm.config.method == "dqn" else arm.config.lm
    label = f"{arm.label} ({model}, {len(curves)} seed{'s' * (len(curves) > 1)})"
    axes.plot(grid, interquartile_mean(values), color=colour, label=label, linewidth=2)  # type: ignore[attr-defined]
    if len(values) > 1:
        low, high = bootstrap_band(values)
        axes.fill_between(grid, low, high, color=colour, alpha=0.18, linewidth=0)  # type: ignore[attr-defined]


def bootstrap_band(values: FloatArray, resamples: int = 1000) -> tuple[FloatArray, FloatArray]:
    """95 % percentile bootstrap interval of the interquartile mean over seeds at each point of a curve.

    Args:
        values: Shape (seeds, points).
        resamples: Bootstrap resamples of the seeds.

    Returns:
        Lower and upper bound, each of shape (points,).
    """
    picks = np.random.default_rng(0).integers(len(values), size=(resamples, len(values)))
    means = interquartile_mean(values[picks], axis=1)
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    return low, high
