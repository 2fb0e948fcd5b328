"""Q-learning in a table (Watkins, Learning from Delayed Rewards, 1989)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from hunch.core import FloatArray


class QTable:
    """A table of Q(s, a).

    Args:
        gamma: Discount per step.
        learning_rate: Share by which an entry moves towards its target.
        initial: Initial value of all entries.
    """

    def __init__(self, gamma: float, learning_rate: float, initial: float) -> None:
        self.gamma, self.learning_rate, self.initial = gamma, learning_rate, initial
        self.entries: dict[tuple[Hashable, Hashable], float] = {}

    def values(self, state: Hashable, actions: Sequence[Hashable]) -> FloatArray:
        """Return Q(s, .), shape (number of actions,)."""
        return np.array([self.entries.get((state, action), self.initial) for action in actions])

    def update(
        self,
        state: Hashable,
        action: Hashable,
        reward: float,
        next_state: Hashable,
        next_actions: Sequence[Hashable],
        prefer: Callable[[FloatArray], FloatArray] = lambda q: q,
    ) -> None:
        """Move Q(s, a) towards r + gamma Q(s', a'), where a' is the preferred action.

        Args:
            state: The state s.
            action: The action a.
            reward: The reward r.
            next_state: The next state s'.
            next_actions: Actions in s'; empty if s' is terminal.
            prefer: Maps Q of the next actions to preferences. Default: Q itself, so that a' is the best.
        """
        target = reward
        if next_actions:
            q = self.values(next_state, next_actions)
            target += self.gamma * float(q[int(np.argmax(prefer(q)))])
        old = self.entries.get((state, action), self.initial)
        self.entries[state, action] = old + self.learning_rate * (target - old)

    def state_dict(self) -> dict[str, Any]:
        """Return all entries that were updated."""
        return {"entries": [[*key, value] for key, value in self.entries.items()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.entries = {(row, action): value for row, action, value in state["entries"]}
