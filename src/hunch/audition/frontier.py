"""Frontiers: what a method gains over its uninformed control, by the ability of the model in its role.

A frontier belongs to a method and an environment, and to errors that are independent or lasting. Its points
are scripted models with a dial for their errors. Their ability is measured by the questions of this package,
never read from the dial. The rows are made by ``hunch study frontiers``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np

Errors = Literal["independent", "lasting"]
Verdict = Literal["pays", "does not pay", "may pay", "not measured"]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """One scripted model: its measured ability, and the method's gain with it.

    Attributes:
        model: Its spec.
        ability: Its ability in the frontier's environment.
        gain: Success of the method with it minus that of the uninformed control, mean over seeds.
        low: Lower end of the 95 % interval of the gain, paired by seed. With errors that last it is the
            lowest gain of a draw of the states in which they are made, because a model has one such draw.
        high: Upper end.
    """

    model: str
    ability: float
    gain: float
    low: float
    high: float


@dataclass(frozen=True)
class Frontier:
    """The gain of a method by the ability of its model, in one environment.

    Attributes:
        method: Name of the method.
        role: Role of the model.
        env: Id of the environment.
        bed: Id of the environment in which the ability was measured.
        errors: Whether the scripted models err independently, or always in the same states.
        measure: What is gained, in words.
        steps: Steps of each run.
        seeds: Runs per point.
        code: Date of the code.
        points: By ability, in ascending order.
        place: The options of a run's command before the model.
    """

    method: str
    role: str
    env: str
    bed: str
    errors: Errors
    measure: str
    steps: int
    seeds: int
    code: str
    points: tuple[Point, ...]
    place: str = "--lm"

    def gain(self, ability: Interval) -> Interval:
        """Return the lowest and highest gain over an interval of the ability.

        Between points the ends of their intervals are interpolated. Beyond the points those of the nearest
        one hold. Points of the same ability all count.
        """
        x = [p.ability for p in self.points]
        within = [p for p in self.points if ability[0] <= p.ability <= ability[1]]
        low = np.interp(ability, x, [p.low for p in self.points])
        high = np.interp(ability, x, [p.high for p in self.points])
        return min(*low.tolist(), *(p.low for p in within)), max(*high.tolist(), *(p.high for p in within))

    def needed(self, worth: float) -> float | None:
        """Return the ability from which the lower end of the gain is at least ``worth``; None if never."""
        short = [i for i, point in enumerate(self.points) if point.low < worth]
        if not short:
            return self.points[0].ability
        if short[-1] == len(self.points) - 1:
            return None
        below, above = self.points[short[-1] : short[-1] + 2]
        share = (worth - below.low) / (above.low - below.low)
        return below.ability + share * (above.ability - below.ability)


def verdict(gain: Interval, over_words: Interval | None, worth: float) -> Verdict:
    """Return whether a model pays.

    It pays if the lower ends of the gain over the uninformed control and over words are at least ``worth``.
    It does not if the upper end of one of them is below.

    Args:
        gain: Of the method with the model over the uninformed control.
        over_words: Over the method with a model that knows words only; None if there is none.
        worth: The least gain that is worth the model.
    """
    both = [gain, *([over_words] if over_words else [])]
    if min(low for low, _ in both) >= worth:
        return "pays"
    return "does not pay" if min(high for _, high in both) < worth else "may pay"


def over(gain: Interval, other: Interval) -> Interval:
    """Return the interval of the difference of two gains, as wide as both together allow."""
    return gain[0] - other[1], gain[1] - other[0]


@cache
def frontiers() -> tuple[Frontier, ...]:
    """Return all stored frontiers."""
    rows = json.loads((resources.files("hunch.audition") / "frontiers.json").read_text())
    return tuple(Frontier(**{**row, "points": tuple(Point(**p) for p in row["points"])}) for row in rows)


def of(role: str, env: str) -> list[Frontier]:
    """Return the frontiers of a role whose ability is measured in an environment."""
    return [f for f in frontiers() if f.role == role and f.bed == env]


def elsewhere(role: str) -> str:
    """Say where the frontiers of a role were made."""
    envs = sorted({f.env.removeprefix("hunch/") for f in frontiers() if f.role == role})
    return f"frontier of {', '.join(envs)}: none here" if envs else "no frontier of this role"


def likeliest(found: Sequence[Frontier], lasting: float) -> list[Frontier]:
    """Return one frontier per method: that of lasting errors if most of the model's errors last.

    Where it is not known how the errors are, it is the one with the lower gain at its upper end.
    """
    wanted: Errors | None = None if np.isnan(lasting) else "lasting" if lasting > 0.5 else "independent"
    by_method: dict[tuple[str, str], list[Frontier]] = {}
    for frontier in found:
        by_method.setdefault((frontier.method, frontier.env), []).append(frontier)
    return [
        min([f for f in own if f.errors == wanted] or own, key=lambda f: f.points[-1].low)
        for own in by_method.values()
    ]
