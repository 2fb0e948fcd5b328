"""The steps collected since the last update of a policy, and the decisions whose steps are not over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hunch.core import Transition
from hunch.rl.policy import Decision, Step


class Kept:
    """The steps collected since the last update, by stream."""

    def __init__(self) -> None:
        self.steps: dict[int, list[Step]] = {}

    def add(self, step: Step) -> None:
        """Add a step to its stream."""
        self.steps.setdefault(step.transition.stream, []).append(step)

    def streams(self) -> list[list[Step]]:
        """Return the steps of each stream."""
        return [self.steps[stream] for stream in sorted(self.steps)]

    def clear(self) -> None:
        """Forget all steps."""
        self.steps.clear()

    def state_dict(self) -> list[Any]:
        """Return streams and steps as plain values, for a checkpoint."""
        return plain_streams(self.steps)

    def load_state_dict(self, state: Sequence[Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.steps = streams_of(state)


def plain_streams(streams: Mapping[int, Sequence[Step]]) -> list[Any]:
    """Return the steps of streams as plain values, for a checkpoint."""
    return [(stream, [(t.plain(), tuple(d)) for t, d in steps]) for stream, steps in streams.items()]


def streams_of(plain: Sequence[Any]) -> dict[int, list[Step]]:
    """Return the steps of each stream from the result of :func:`plain_streams`."""
    return {stream: [Step(Transition.of(t), Decision(*d)) for t, d in steps] for stream, steps in plain}


def plain_decisions(decided: Mapping[int, Decision]) -> list[Any]:
    """Return the latest decision of each stream as plain values, for a checkpoint.

    With several players a step lasts until it is its player's turn again: it may outlast a checkpoint.
    """
    return [(stream, tuple(decision)) for stream, decision in decided.items()]


def decisions_of(plain: Sequence[Any]) -> dict[int, Decision]:
    """Return the latest decision of each stream from the result of :func:`plain_decisions`."""
    return {stream: Decision(*decision) for stream, decision in plain}
