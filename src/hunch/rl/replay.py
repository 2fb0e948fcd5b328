"""Experience replay over numbered states and actions (Lin, 1992)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hunch.core import FloatArray, IntArray

ROWS = 1024
"""With how many rows a buffer begins; it doubles as it fills."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Transitions as columns of shape (n,), with states and actions as the numbers they were added under."""

    state: IntArray
    action: IntArray
    reward: FloatArray
    next_state: IntArray
    terminated: FloatArray


class Replay:
    """The last ``capacity`` transitions, or all where it is None, sampled uniformly with replacement."""

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity
        self.added = 0
        rows = ROWS if capacity is None else min(ROWS, capacity)
        self._ids = np.zeros((rows, 3), dtype=np.int64)
        self._values = np.zeros((rows, 2))

    def __len__(self) -> int:
        return self.added if self.capacity is None else min(self.added, self.capacity)

    def add(self, state: int, action: int, reward: float, next_state: int, terminated: bool) -> None:
        """Add one transition, forgetting the oldest when full."""
        row = self.added if self.capacity is None else self.added % self.capacity
        if row == len(self._ids):
            self._make_room(2 * row)
        self._ids[row] = state, action, next_state
        self._values[row] = reward, terminated
        self.added += 1

    def sample(self, n: int, rng: np.random.Generator) -> Batch:
        """Draw n transitions uniformly, with replacement."""
        rows = rng.integers(len(self), size=n)
        ids, values = self._ids[rows], self._values[rows]
        return Batch(ids[:, 0], ids[:, 1], values[:, 0], ids[:, 2], values[:, 1])

    def state_dict(self) -> dict[str, Any]:
        """The filled part of the buffer."""
        return {"added": self.added, "ids": self._ids[: len(self)], "values": self._values[: len(self)]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a buffer that :meth:`state_dict` gave."""
        self.added = int(state["added"])
        self._make_room(len(self))
        self._ids[: len(self)] = state["ids"]
        self._values[: len(self)] = state["values"]

    def _make_room(self, rows: int) -> None:
        """Enlarge the buffer to so many rows, but not beyond its capacity."""
        wanted = rows if self.capacity is None else min(rows, self.capacity)
        more = max(0, wanted - len(self._ids))
        self._ids = np.concatenate([self._ids, np.zeros((more, 3), dtype=np.int64)])
        self._values = np.concatenate([self._values, np.zeros((more, 2))])
