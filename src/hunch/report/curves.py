"""Learning curves over seeds, as numbers and as a picture."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hunch import methods
from hunch.core import FloatArray, HunchError
from hunch.envs.design.problem import is_design_problem
from hunch.extras import library
from hunch.printable import printable
from hunch.report import cells
from hunch.rl.statistics import band_over_seeds, interquartile_mean
from hunch.runs.compare import Arm, Job
from hunch.runs.files import read_lines, write_atomically
from hunch.runs.result import Result

# The palette of Okabe and Ito, whose colours can be told apart with any colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

WIDE = 40
"""Maximum characters of labels that fit side by side."""
LONGEST = 80
"""Maximum characters of a label; a longer label loses its middle."""
FEWEST = 10
"""Minimum number of episodes before a running mean is drawn."""

X = {
    "steps": "environment steps",
    "calls": "model calls",
    "requests": "requests: model calls and cache hits",
    "tokens": "tokens, read and written",
    "seconds": "wall time of the run, s",
}
"""Possible x axes of a curve, with their titles."""
LIFE = {"episode": "episode of the lifetime"}
"""The x axis of curves over the episodes of lifetimes, with its title."""
PROGRAMS = "programs"
"""Title of the x axis of a search for programs."""
BEST = {"best": "fitness of the best program so far"}
"""The y axis of a search for programs, with its title."""
UPDATES = "updates"
"""Title of the x axis if all runs learn from recorded data only."""
Y = {"success": "success, last 50 episodes", "return": "return, last 50 episodes"}
"""Possible y axes of a curve, with their titles."""

_NO_METRIC = frozenset(("step", "episodes", "seconds", "usage", "models", *Y))

Points = dict[str, FloatArray]
"""The points of a run's curves: shape (lines,) for each name in X and Y.

Other metrics of the method have separate names, with nan for lines without a value.

A study may provide other values, at least over steps.
"""


@dataclass(frozen=True, eq=False)
class Curve:
    """The curve of a method or control over its seeds.

    Attributes:
        x: Shape (points,), ascending.
        value: Interquartile mean over seeds, same shape.
        low: Lower bound of the 95 % bootstrap interval, same shape; nan with one seed.
        high: Upper bound, same shape.
    """

    x: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray


def points(lines: Sequence[dict[str, Any]]) -> Points:
    """Return the points of one run's curves, from the line at which :data:`FEWEST` episodes had ended.

    The curve of a search for programs begins at the first one: the best so far is no running mean.
    """
    fewest = 1 if any("best" in line for line in lines) else FEWEST
    lines = [line for line in lines if line["episodes"] >= fewest]
    usage = [line["usage"] for line in lines]
    columns = {
        "steps": [line["step"] for line in lines],
        "calls": [used["calls"] for used in usage],
        "requests": [used["calls"] + used["cache_hits"] for used in usage],
        "tokens": [used["prompt_tokens"] + used["completion_tokens"] for used in usage],
        "seconds": [line["seconds"] for line in lines],
        "success": [line["success"] for line in lines],
        **{name: [line.get(name, np.nan) for line in lines] for name in ("return", *logged(lines))},
    }
    return {name: np.asarray(column, dtype=float) for name, column in columns.items()}


def course(folder: Path, steps: int) -> Points:
    """Return the points of the curves of a complete run.

    Raises:
        HunchError: if its metrics are damaged or cut short.
    """
    path = folder / "metrics.jsonl"
    lines = read_lines(path)
    try:
        if not lines or lines[-1]["step"] < steps:
            raise HunchError(f"{path} is truncated.")
        return points(lines)
    except (KeyError, TypeError, ValueError, OverflowError) as error:  # only files without checksums get here
        raise HunchError(f"{path} is damaged: {error} is missing or wrong.") from error


def within(result: Result, lifetime: int) -> Points:
    """Return the mean success and return by the episode of the lifetime, from 1.

    The episodes are those of the last evaluation, or of the last quarter of the steps without any.
    """
    last = max((episode.step for episode in result.evaluations), default=0)
    least = last or 0.75 * result.steps
    judged = [e for e in result.evaluations or result.episodes if e.step >= least]
    by = [[e for e in judged if e.number % lifetime == n] for n in range(lifetime)]
    known = [n for n, runs in enumerate(by) if runs]
    return {
        "episode": np.array([n + 1.0 for n in known]),
        "success": np.array([np.mean([e.success for e in by[n]]) for n in known]),
        "return": np.array([np.mean([e.episode_return for e in by[n]]) for n in known]),
    }


def logged(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of a method's metrics, such as the loss or the share of answers without an action."""
    names = dict.fromkeys(name for line in lines for name in line)
    return [name for name in names if name not in _NO_METRIC]


def learning_curve(runs: Sequence[Points], x: str, y: str, size: int = 200) -> Curve | None:
    """Combine the runs of an arm into one curve, where all runs have values; None if they nowhere have.

    Seeds may need different numbers of calls, tokens or seconds: a run that ended keeps its last value.
    """
    runs = [_known(run, x, y) for run in runs if y in run]
    runs = [run for run in runs if len(run[x])]
    if not runs:
        return None
    start, end = max(run[x][0] for run in runs), max(run[x][-1] for run in runs)
    grid = np.linspace(start, end, size if end > start else 1)
    values = np.array([np.interp(grid, *_ascending(run[x], run[y])) for run in runs])
    nothing = np.full(len(grid), np.nan)
    low, high = band_over_seeds(values) if len(values) > 1 else (nothing, nothing)
    return Curve(grid, interquartile_mean(values), low, high)


def _known(run: Points, x: str, y: str) -> Points:
    """Return the points that have a value."""
    known = np.isfinite(run[y])
    return {name: run[name][known] for name in (x, y)}


def _ascending(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Keep only the last of several points at the same x."""
    last = np.append(np.diff(x) > 0, True)
    return x[last], y[last]


def draw_curves(todo: Sequence[Job], path: Path, title: str) -> Path:
    """Draw the score of a comparison over environment steps and save it as PNG; see :func:`draw`."""
    arms: dict[Arm, list[Points]] = {}
    for job in todo:
        arms.setdefault(job.arm, []).append(course(job.folder, job.config.steps))
    return draw({title: arms}, path)


def draw(panels: dict[str, dict[Arm, list[Points]]], path: Path, y: str = "", x: str = "steps") -> Path:
    """Draw a value over environment steps or episodes, and save the picture as PNG.

    Without ``y`` it is the success rate; in a search for programs, the fitness of the best so far.

    There is one panel per title, and one line per arm: the interquartile mean over seeds, with its 95 %
    bootstrap interval as a band.

    Raises:
        UsageError: if matplotlib is not installed.
    """
    figure = blank(len(panels))
    for subfigure, (title, arms) in zip(
        figure.subfigures(len(panels), squeeze=False)[:, 0], panels.items(), strict=True
    ):
        _draw_panel(subfigure, arms, title, x, y or score_of(arms))
    data = io.BytesIO()
    figure.savefig(data, format="png", metadata={"Software": None})
    write_atomically(path, data.getvalue())  # not through a link to another file
    return path


def as_csv(panels: dict[str, dict[Arm, list[Points]]]) -> str:
    """Return the curves over steps as comma-separated values, one line per arm and place of its curve.

    The arm has the label that it has in the table, the page and the picture.
    """
    bounds = [f"{y}{end}" for y in Y for end in ("", "_low", "_high")]
    records: list[dict[str, str | float]] = []
    for title, arms in panels.items():
        for arm, runs in arms.items():
            by_step: dict[float, dict[str, float]] = {}
            for y in Y:
                curve = learning_curve(runs, "steps", y)
                if curve is None:
                    continue
                for step, value, low, high in zip(curve.x, curve.value, curve.low, curve.high, strict=True):
                    at = by_step.setdefault(float(step), {})
                    at |= {y: value, f"{y}_low": low, f"{y}_high": high}
            for step, at in sorted(by_step.items()):
                known = {name: float(f"{value:.6g}") for name, value in at.items() if np.isfinite(value)}
                whose = {"comparison": title, "arm": arm.label, "model": arm.model}
                records.append({**whose, "seeds": len(runs), "steps": float(f"{step:.6g}"), **known})
    return cells.as_csv(["comparison", "arm", "model", "seeds", "steps", *bounds], records)


def unit(arms: Iterable[Arm]) -> str:
    """Return the unit of the runs' steps: environment steps, programs, or updates if only data are read."""
    arms = list(arms)
    if all(searches(arm) for arm in arms):
        return PROGRAMS
    return UPDATES if all(arm.config.offline for arm in arms) else X["steps"]


def searches(arm: Arm) -> bool:
    """Return whether an arm searches for programs, so that its best one is its score.

    A design problem of a user may be made by a function, or lie in a module that a report may not import. So
    the method decides, too: one that writes programs is refused everywhere else.
    """
    config = arm.config
    writes = "agent" not in config.objects and methods.find(config.method).acts == "program"
    return writes or ("env" not in config.objects and is_design_problem(config.env))


def score_of(arms: Mapping[Arm, Sequence[Points]]) -> str:
    """Return what arms are drawn by: ``best`` if all search for programs and say so, else ``success``."""
    said = all("best" in points for runs in arms.values() for points in runs)
    return "best" if arms and said and all(map(searches, arms)) else "success"


def blank(panels: int) -> Any:
    """Return an empty figure with a number of panels, one below the other.

    Raises:
        UsageError: if matplotlib is not installed.
    """
    figure = library("matplotlib.figure", "Pictures need matplotlib", "plot")
    return figure.Figure(figsize=(7.2, 4.4 * panels), layout="constrained", dpi=150)


def _cut(label: str) -> str:
    """Keep both ends: the arm's name, and the end of a model's folder."""
    half = LONGEST // 2
    label = _shown(label)
    return label if len(label) <= LONGEST else f"{label[:half]}…{label[1 - half :]}"


def _shown(text: str) -> str:
    """Return a text of others as a picture can show it: no control characters, and no formulas of TeX."""
    return printable(text).replace("$", r"\$")


def _draw_panel(figure: Any, arms: dict[Arm, list[Points]], title: str, x: str, y: str) -> None:
    axes = figure.add_subplot()
    styles = [(colour, style) for style in ("-", "--", ":") for colour in COLOURS]
    for (arm, runs), (colour, style) in zip(arms.items(), styles * len(arms), strict=False):
        curve = learning_curve(runs, x, y)
        if curve is None:
            continue
        named = "no model" if arm.model == "none" else arm.model
        model = "" if named in arm.label else f"{named}, "
        label = f"{arm.label} ({model}{len(runs)} seed{'s' * (len(runs) > 1)})"
        axes.plot(curve.x, curve.value, style, color=colour, label=_cut(label), linewidth=2)
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    axes.set(xlabel=LIFE.get(x) or unit(arms), ylabel=y if x in LIFE else (Y | BEST).get(y, y))
    if y == "success":
        axes.set_ylim(-0.02, 1.02)
    axes.set_title(_shown(title), loc="left", fontsize=11)
    if x == "steps":
        axes.set_xlim(0, max(arm.config.steps for arm in arms))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        longest = max(len(str(line.get_label())) for line in axes.lines)
        columns = 2 if longest <= WIDE else 1  # a long label would run out of the picture
        figure.legend(loc="outside lower left", ncols=columns, frameon=False, fontsize=9)
