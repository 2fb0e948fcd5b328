"""Draws the result of a run; importing this module needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import groupby

from matplotlib.figure import Figure

from hunch.rl.rollout import Finished
from hunch.rl.success import WINDOW


class Picture(Figure):
    """A figure that a notebook shows even without pyplot."""

    def _repr_png_(self) -> bytes:
        data = BytesIO()
        self.savefig(data, format="png")
        return data.getvalue()


def draw(episodes: Sequence[Finished], evaluations: Sequence[Finished], steps: int) -> Picture:
    """Draw success over steps: a running mean over training episodes, and each evaluation."""
    figure = Picture(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    if episodes:
        recent = [_rate(episodes[max(0, i - WINDOW) : i]) for i in range(1, len(episodes) + 1)]
        axes.plot([e.step for e in episodes], recent, label=f"training, last {WINDOW} episodes")
    if evaluations:
        groups = {step: list(own) for step, own in groupby(evaluations, key=lambda e: e.step)}
        axes.plot(list(groups), [_rate(own) for own in groups.values()], "o-", label="evaluation")
    axes.set(xlabel="steps", ylabel="success", ylim=(-0.02, 1.02), xlim=(0, steps))
    if axes.lines:
        axes.legend(frameon=False)
    return figure


def _rate(episodes: Sequence[Finished]) -> float:
    return sum(episode.success for episode in episodes) / len(episodes)
