"""Frontiers: a method's gain over its uninformed control, as a function of the model's ability in its role.

A frontier belongs to a method and an environment, and to errors of one kind: independent, recurring,
recurring with one answer (the first or the last that is listed), or answers that cannot be read. Its points
are scripted models with a given error rate. Their ability is measured by this package's questions, not taken
from this rate. The rows are made by ``hunch study frontiers``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import isnan, nan
from typing import Final, Literal

import numpy as np

Errors = Literal["independent", "lasting", "first", "last", "unread"]
Verdict = Literal["pays", "does not pay", "may pay", "could not be asked", "not measured"]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """One scripted model: its measured ability, and the method's gain with it.

    Attributes:
        model: Spec of the scripted model.
        ability: Measured ability of the model in the frontier's environment, 0 to 1.
        gain: The method's success rate with the model minus that of the uninformed control, mean over seeds.
        low: Lower bound of the 95 % interval of the gain, paired by seed. For errors that recur, it is the
            lowest gain over draws of the states with errors, because a real model has one such draw.
        high: Upper bound.
    """

    model: str
    ability: float
    gain: float
    low: float
    high: float


@dataclass(frozen=True)
class Frontier:
    """The gain of a method as a function of its model's ability, in one environment.

    Attributes:
        method: Name of the method.
        role: Role of the model.
        env: Id of the environment of the runs.
        bed: Id of the environment in which the ability was measured.
        errors: Whether the scripted models err independently, or always in the same states; there with
            any other answer, or with the one that is listed first or last (a judge's Yes or No). ``unread``
            models now and then give an answer that cannot be read, and are right otherwise.
        measure: The measure of the gain, in words.
        steps: Steps of each run.
        seeds: Runs per point.
        code: Date of the code.
        points: The scripted models, in ascending order of ability.
        place: The options of the run's command that precede the model.
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
        """Return the lower and upper bound of the gain over an interval of the ability.

        Between points their bounds are interpolated. Outside their range, the bounds of the nearest
        point apply. If points have the same ability, all count.
        """
        x = [p.ability for p in self.points]
        within = [p for p in self.points if ability[0] <= p.ability <= ability[1]]
        low = np.interp(ability, x, [p.low for p in self.points])
        high = np.interp(ability, x, [p.high for p in self.points])
        return min(*low.tolist(), *(p.low for p in within)), max(*high.tolist(), *(p.high for p in within))

    def needed(self, worth: float) -> float | None:
        """Return the ability above which the lower bound of the gain is at least ``worth``; None if none."""
        short = [i for i, point in enumerate(self.points) if point.low < worth]
        if not short:
            return self.points[0].ability
        if short[-1] == len(self.points) - 1:
            return None
        below, above = self.points[short[-1] : short[-1] + 2]
        share = (worth - below.low) / (above.low - below.low)
        return below.ability + share * (above.ability - below.ability)


def verdict(gain: Interval, over_words: Interval | None, worth: float) -> Verdict:
    """Return whether a model is worth its cost.

    It is if the lower bounds of the gain over the uninformed control and over words are at least ``worth``.
    It is not if one of the upper bounds is below ``worth``.

    Args:
        gain: Interval of the method's gain with the model over the uninformed control.
        over_words: Interval of the gain over the lexical stand-in; None without one.
        worth: Smallest gain in success rate for which a model is recommended.
    """
    both = [gain, *([over_words] if over_words else [])]
    if min(low for low, _ in both) >= worth:
        return "pays"
    return "does not pay" if min(high for _, high in both) < worth else "may pay"


def over(gain: Interval, other: Interval) -> Interval:
    """Return the interval of the difference of two gains, as wide as both intervals allow."""
    return gain[0] - other[1], gain[1] - other[0]


@cache
def frontiers() -> tuple[Frontier, ...]:
    """Return all stored frontiers."""
    rows = json.loads((resources.files("hunch.audition") / "frontiers.json").read_text(encoding="utf-8"))
    return tuple(Frontier(**{**row, "points": tuple(Point(**p) for p in row["points"])}) for row in rows)


def of(role: str, env: str) -> list[Frontier]:
    """Return the frontiers of a role whose abilities are measured in an environment."""
    return [f for f in frontiers() if f.role == role and f.bed == env]


def elsewhere(role: str) -> str:
    """Return the environments of a role's frontiers, in words."""
    envs = sorted({f.env.removeprefix("hunch/") for f in frontiers() if f.role == role})
    return f"frontier of {', '.join(envs)}: none here" if envs else "no frontier of this role"


ONE_SIDED: Final = 0.9
"""Share of a model's errors that give one answer, or cannot be read, from which on they are of this kind."""
FEW: Final = 5
"""Fewer errors do not show whether they are all of one kind."""


def shares(first: float, last: float, unread: float, wrong: float, questions: int) -> dict[str, float]:
    """Return which shares of a model's errors are all of one kind, as columns of a role.

    Args:
        first: Weight of the errors that name the option listed first.
        last: Weight of those that name the one listed last.
        unread: Weight of the answers that cannot be read.
        wrong: Weight of all errors, those that cannot be read among them.
        questions: Number of questions with an error; of fewer than five every share is nan.
    """
    known = wrong > 0 and questions >= FEW
    parts = {"errors: first": first, "errors: last": last, "errors: unread": unread}
    return {name: part / wrong if known else nan for name, part in parts.items()}


def kind(columns: Mapping[str, float]) -> Errors | None:
    """Return the kind of a model's errors; None if it is unknown.

    Args:
        columns: What a role measures beside the ability. ``lasting errors`` is the share of the errors that
            recur; ``errors: first``, ``errors: last`` and ``errors: unread`` are the shares that name the
            option listed first or last, or cannot be read. Shares that are unknown are nan or missing.
    """
    if columns.get("errors: unread", nan) >= ONE_SIDED:
        return "unread"
    lasting = columns.get("lasting errors", nan)
    if isnan(lasting):
        return None
    if lasting <= 0.5:
        return "independent"
    # Nothing compares with nan, so an unknown share is not a large one.
    if columns.get("errors: first", nan) >= ONE_SIDED:
        return "first"
    if columns.get("errors: last", nan) >= ONE_SIDED:
        return "last"
    return "lasting"


IN_ITS_PLACE: Final[Mapping[Errors | None, Errors]] = {
    "first": "lasting",
    "last": "lasting",
    "unread": "independent",
}
"""The kind whose frontier stands for one that has none."""


def likeliest(frontiers: Sequence[Frontier], errors: Errors | None) -> list[Frontier]:
    """Return one frontier per method: the one with errors of the model's kind.

    Without a frontier of their own, errors to one answer have the one of errors that recur, and answers that
    cannot be read that of independent errors. If there is none of either, or the kind is unknown, it is that
    with the lower gain of the best model, of independent errors and those that recur.
    """
    kinds = (errors, IN_ITS_PLACE.get(errors))
    by_method: dict[tuple[str, str], list[Frontier]] = {}
    for frontier in frontiers:
        by_method.setdefault((frontier.method, frontier.env), []).append(frontier)
    chosen = []
    for alike in by_method.values():
        fitting = [f for wanted in kinds for f in alike if f.errors == wanted]
        usual = [f for f in alike if f.errors in ("independent", "lasting")]
        chosen.append(fitting[0] if fitting else min(usual or alike, key=lambda f: f.points[-1].low))
    return chosen
