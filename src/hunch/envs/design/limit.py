"""Episodes that end, in environments that have no limit of steps."""

from __future__ import annotations

from typing import Any, Final

import gymnasium as gym

from hunch.core import UsageError

LIMIT: Final = 2_000
"""Steps after which an episode ends in an environment that is registered without a limit of steps (ours).
Without it, a policy that stands still would be played for ever."""


def made(base: str, purpose: str, **options: Any) -> gym.Env[Any, Any]:
    """Make the environment of Gymnasium in which programs are tried, with a limit of steps.

    Args:
        base: Its id.
        purpose: What for, in a message.
        options: Options of :func:`gymnasium.make`.

    Raises:
        UsageError: if there is none, or it cannot be made.
    """
    try:
        return limited(gym.make(base, **options))
    except gym.error.UnregisteredEnv as error:
        raise UsageError(
            f"There is no environment {base!r} for {purpose} ({str(error).rstrip('.')}): name one that is "
            "registered with Gymnasium, by its id, or by MODULE:ID if MODULE registers it."
        ) from None
    except gym.error.Error as error:
        raise UsageError(f"There is no environment {base!r} for {purpose}: {error}") from None


def limited(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return an environment with a limit of steps: its own, or :data:`LIMIT`."""
    if env.spec is not None and env.spec.max_episode_steps is None:
        return gym.wrappers.TimeLimit(env, LIMIT)
    return env


def limit_of(env: gym.Env[Any, Any]) -> str:
    """Return :data:`LIMIT` in words if an environment is registered without one, for a problem's identity."""
    registered = gym.registry.get(env.spec.id) if env.spec is not None else None
    return f" {LIMIT} steps" if registered is not None and registered.max_episode_steps is None else ""


def limit_of_steps(env: gym.Env[Any, Any]) -> int:
    """Return the smallest limit of steps: that of the registration, of the environment itself, or of here."""
    registered = env.spec.max_episode_steps if env.spec is not None else None
    of_environment = getattr(env.unwrapped, "max_steps", None)
    return min(limit for limit in (registered, of_environment, LIMIT) if isinstance(limit, int))
