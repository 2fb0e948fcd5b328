"""Acts on the feedback of a reward: what its components and the task's metric did during a training.

The findings are those that Eureka's prompt asks for: a component that does not change is replaced, one that
dominates the others is rescaled, and if nothing was achieved, all are replaced. In addition, a component that
falls as the metric rises gets the other sign, and if the metric rose but the task is not solved, a component
is added.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

import numpy as np

from hunch.core import FloatArray
from hunch.envs.design.reward_grammar import Draw, Part

_NUMBER = r"-?[\d.]+(?:e[+-]?\d+)?"
_CURVE = re.compile(rf"^(\w[\w ]*): ({_NUMBER}(?:, {_NUMBER})+);", re.MULTILINE)
_NAME_ERROR = re.compile(r"NameError: name '(\w+)' is not defined")
FLAT = 0.02
"""Relative change below which a curve is flat."""
DWARFS = 20.0
"""Factor above which a part dominates another."""
PROGRESS = 0.05
"""Rise of the metric that counts as progress."""
SOLVED = 0.95
"""Value of the metric at which the task is solved."""
MOST = 4
"""Maximum number of parts; the oldest are dropped."""


def repaired(
    parts: Sequence[Part],
    names: Sequence[str],
    feedback: str,
    draw: Draw,
    rng: np.random.Generator,
    share: float,
) -> list[Part]:
    """Return the parts after acting on a share of the findings in the feedback; unchanged without feedback.

    Args:
        parts: The parts of the program.
        names: The variables that it may read.
        feedback: The feedback.
        draw: Draws another part.
        rng: Random generator.
        share: Probability with which a finding is acted on.
    """
    if wrong := _NAME_ERROR.search(feedback):
        near = difflib.get_close_matches(wrong[1], names, n=1, cutoff=0.0)
        mended = [Part(p.weight, re.sub(rf"\b{wrong[1]}\b", near[0], p.expression)) for p in parts]
        return mended if rng.random() < share else list(parts)
    curves = {name.strip(): np.array(row.split(","), dtype=float) for name, row in _CURVE.findall(feedback)}
    metric = next((curve for name, curve in curves.items() if not name.startswith("part_")), None)
    if metric is None:
        return list(parts)
    changed = []
    for i, part in enumerate(parts):
        if f"part_{i}" in curves and rng.random() < share:
            part = _mended(part, i, curves, metric, draw)
        changed.append(part)
    if _rises(metric) and max(metric) < SOLVED and rng.random() < share:
        changed.append(draw())
    return changed[-MOST:]


def redrawn(parts: Sequence[Part], draw: Draw, rng: np.random.Generator, share: float) -> list[Part]:
    """Return the parts after a revision without feedback: a share is replaced, and one may be added."""
    kept = [draw() if rng.random() < share else part for part in parts]
    return [*kept, *([draw()] if rng.random() < share else [])][-MOST:]


def _mended(part: Part, i: int, curves: Mapping[str, FloatArray], metric: FloatArray, draw: Draw) -> Part:
    """Return the change that a part's curve suggests: another part, the other sign, or another weight."""
    curve = curves[f"part_{i}"]
    size = np.mean(np.abs(curve))
    if np.ptp(curve) <= FLAT * (size + 1e-9) or not _rises(metric):
        return draw()
    if np.ptp(metric) > 0 and np.corrcoef(curve, metric)[0, 1] < 0:
        return Part(-part.weight, part.expression)
    sizes = [np.mean(np.abs(other)) for name, other in curves.items() if name.startswith("part_")]
    if size > DWARFS * min((other for other in sizes if other > 0), default=size):
        return Part(part.weight / 10, part.expression)
    return part


def _rises(metric: FloatArray) -> bool:
    """Return whether training raised the task's metric, or the task is nearly solved."""
    return bool(max(metric) - metric[0] >= PROGRESS or max(metric) >= SOLVED)
