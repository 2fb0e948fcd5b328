"""Wrappers that change what a text environment shows."""

from __future__ import annotations

from collections import deque
from typing import Any, SupportsFloat

import gymnasium

from hunch.core import UsageError


class History(gymnasium.Wrapper[str, "str | int", str, "str | int"]):
    """Adds the last ``n`` observation-action pairs as ``info["history"]``, oldest first.

    The observation is unchanged; :meth:`hunch.core.State.text` joins history and observation.

    Args:
        env: A text environment.
        n: Number of pairs to keep.

    Raises:
        UsageError: if ``n`` is negative.
    """

    def __init__(self, env: gymnasium.Env[str, str | int], n: int) -> None:
        if n < 0:
            raise UsageError(f"The number of pairs in the history must be at least 0, not {n}.")
        super().__init__(env)
        self.n = n
        self._past: deque[tuple[str, str]] = deque(maxlen=n)
        self._observation = ""
        self._actions: tuple[str, ...] = ()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode with an empty history."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._past.clear()
        return observation, self._told(observation, info)

    def step(self, action: str | int) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take an action and remember it with the observation before it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        name = action if isinstance(action, str) else self._actions[action]
        self._past.append((self._observation, name))
        return observation, reward, terminated, truncated, self._told(observation, info)

    def _told(self, observation: str, info: dict[str, Any]) -> dict[str, Any]:
        self._observation, self._actions = observation, info.get("actions", ())
        return {**info, "history": tuple(self._past)}
