"""Episodes that end, in environments that have no limit of steps."""

from __future__ import annotations

from typing import Any, Final

import gymnasium as gym

LIMIT: Final = 2_000
"""Steps after which an episode ends in an environment that is registered without a limit of steps (ours).
Without it, a policy that stands still would be played for ever."""


def limited(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return an environment with a limit of steps: its own, or :data:`LIMIT`."""
    if env.spec is not None and env.spec.max_episode_steps is None:
        return gym.wrappers.TimeLimit(env, LIMIT)
    return env


def limit_of(env: gym.Env[Any, Any]) -> str:
    """Return :data:`LIMIT` in words if an environment is registered without one, for a problem's identity."""
    registered = gym.registry.get(env.spec.id) if env.spec is not None else None
    return f" {LIMIT} steps" if registered is not None and registered.max_episode_steps is None else ""
