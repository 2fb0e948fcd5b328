"""Experience replay over numbered states and actions (Lin, 1992)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hunch.core import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Batch:
    """Transitions as columns of shape (n,), with states and actions as the numbers they were added under."""

    state: IntArray
    action: IntArray
    reward: FloatArray
    next_state: IntArray
    terminated: FloatArray


class Replay:
    """The last ``capacity`` transitions, sampled uniformly with replacement."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.added = 0
        self._ids = np.zeros((capacity, 3), dtype=np.int64)
        self._values = np.zeros((capacity, 2), dtype=np.float64)

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, state: int, action: int, reward: float, next_state: int, terminated: bool) -> None:
        """Add one transition, forgetting the oldest when full."""
        row = self.added % self.capacity
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
        self._ids[: len(self)] = state["ids"]
        self._values[: len(self)] = state["values"]
