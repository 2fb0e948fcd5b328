"""Gymnasium's Pendulum in words, with a choice of five torques."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from hunch.envs.describers import Classic

TORQUES = (-2.0, -1.0, 0.0, 1.0, 2.0)
"""Torques in Nm, positive anticlockwise; Gymnasium accepts any number in this range."""
PENDULUM_ACTIONS = tuple(f"torque {torque:g}" for torque in TORQUES)
UPRIGHT = math.cos(math.radians(10))


def describe_pendulum(observation: Sequence[float]) -> str:
    """Describe the angle from upright and the angular velocity, in degrees and degrees/s."""
    x, y, speed = (float(value) for value in observation)
    angle, turning = math.degrees(math.atan2(y, x)), math.degrees(speed)
    stands = f"is {abs(angle):.1f} degrees {_side(angle)} of upright" if abs(angle) >= 0.05 else "is upright"
    swings = f"turns {_side(turning)} at {abs(turning):.0f} degrees/s"
    return f"The pendulum {stands} and {swings if abs(turning) >= 0.5 else 'does not turn'}."


def _side(value: float) -> str:
    return "left" if value > 0 else "right"


def torque(action: str) -> float:
    """Return the torque that an action names, in Nm."""
    return float(action.split()[1])


def nearest(value: float) -> str:
    """Return the action whose torque is nearest to a value in Nm."""
    return min(PENDULUM_ACTIONS, key=lambda action: abs(torque(action) - value))


class _Torques(gymnasium.ActionWrapper[Any, Any, Any]):
    """Takes the number of a torque."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.action_space = Discrete(len(TORQUES))

    def action(self, action: int) -> Any:
        """The torque in the form that Gymnasium's environment expects."""
        return np.array([TORQUES[action]], dtype=np.float32)


class Pendulum(Classic):
    """Swing a pendulum up and hold it upright.

    Gymnasium's ``Pendulum-v1``: reward -(angle^2 + 0.1 velocity^2 + 0.001 torque^2) per step, in radians; an
    episode only ends by ``max_steps``. Success is to be within 10 degrees of upright then.

    Args:
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"``, ``"human"`` or ``"rgb_array"``.
    """

    task = "swing the pendulum up and hold it upright"

    def __init__(self, *, max_steps: int = 200, render_mode: str | None = None) -> None:
        from gymnasium.envs.classic_control.pendulum import PendulumEnv

        super().__init__(
            lambda render_mode: _Torques(PendulumEnv(render_mode)),
            describe_pendulum,
            PENDULUM_ACTIONS,
            _held,
            max_steps=max_steps,
            render_mode=render_mode,
        )

    def _put(self, env: Any, raw: Any) -> tuple[Any, Mapping[str, Any]]:
        x, y, speed = (float(value) for value in raw)
        env.state, env.last_u = np.array([math.atan2(y, x), speed]), None
        return np.array(raw, dtype=np.float32), {}


def _held(
    observation: Any, reward: float, terminated: bool, truncated: bool, info: Mapping[str, Any]
) -> bool:
    return truncated and bool(observation[0] >= UPRIGHT)
