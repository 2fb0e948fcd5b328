"""Decides when steps enter the replay buffer and when updates are due: evenly, or in rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hunch.core import Transition
from hunch.rl.q_learning import QConfig, Replay

Row = Sequence[float]
"""A step as a row of the replay buffer, in the order of :class:`hunch.rl.q_learning.Batch`."""


class Schedule:
    """Stores steps in a replay buffer, and counts the updates that are due.

    By default a step is stored at once, and an update is due every ``update_every`` steps after ``warmup``.
    With ``surplus`` an episode is stored at its end; a failed one only while failures exceed successes by at
    most ``surplus``, and then in ``copies``. With ``round``, updates are due after so many episodes.
    """

    def __init__(self, config: QConfig, replay: Replay) -> None:
        self.config, self.replay = config, replay
        self.held: dict[int, list[Row]] = {}  # by stream: steps of an episode that may not be stored
        self.steps = self.failures = self.successes = self.owed = 0

    def store(self, rows: Sequence[Row]) -> None:
        """Store steps at once."""
        for row in rows:
            self.replay.add(*row)

    def observe(self, transitions: Sequence[Transition], rows: Sequence[Row]) -> None:
        """Store steps when they are due to be stored, and count the episodes that end."""
        self.steps += len(transitions)
        if self.config.surplus is None:
            self.store(rows)
        for t, row in zip(transitions, rows, strict=True):
            if self.config.surplus is not None:
                self.held.setdefault(t.stream, []).append(row)
            if t.done:
                self._end(t)

    def _end(self, last: Transition) -> None:
        c, rows = self.config, self.held.pop(last.stream, [])
        self.successes += last.success
        self.failures += not last.success
        if last.success or self.failures <= self.successes + (c.surplus or 0):
            self.store(rows * (1 if last.success else c.copies))
        if c.round and (self.successes + self.failures) % c.round == 0:
            self.owed += c.round_updates or 4 * len(self.replay) // c.batch_size

    @property
    def due(self) -> int:
        """Number of updates that should have been made so far."""
        c = self.config
        return self.owed if c.round else max(0, self.steps - c.warmup) // c.update_every

    def state_dict(self) -> dict[str, Any]:
        """Return unfinished episodes and counters."""
        held = [(stream, [list(map(float, row)) for row in rows]) for stream, rows in self.held.items()]
        return {"held": held, "counters": (self.steps, self.failures, self.successes, self.owed)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.held = dict(state["held"])
        self.steps, self.failures, self.successes, self.owed = state["counters"]
