"""Gymnasium's MountainCarContinuous, vectorised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hunch.core import FloatArray
from hunch_studies.worlds.rewards.base import SMALL, Variables, World


class MountainCar(World):
    """Gymnasium's MountainCarContinuous, with episodes of 200 steps; a car that has arrived stays."""

    version = "ef30bc0319b80718"
    task = (
        "A weak car stands in a valley and has to reach the top of the hill on the right, at position 0.45, "
        "within 200 steps. Its engine cannot climb the hill at once."
    )
    variables: ClassVar[Mapping[str, str]] = {
        "position": "(n,), along the track after the step, from -1.2 to 0.6; the valley is at -0.52",
        "velocity": "(n,), from -0.07 to 0.07 a step",
        "action": "(n, 1), the force, from -1 to 1",
    }
    horizon = 200
    learner = SMALL
    episodes = 6
    sizes = (2, 1)
    degree_description = "the share of the way from the valley to the top at the end"
    sparse = """import numpy as np

def reward(position, velocity, action):
    success = (position >= 0.45).astype(float)
    return success, {"success": success}
"""
    dense = """import numpy as np

def reward(position, velocity, action):
    success = 10.0 * (position >= 0.45)
    speed = 10.0 * np.abs(velocity)
    return success + speed, {"success": success, "speed": speed}
"""

    def begin(self, n: int, rng: np.random.Generator) -> Variables:
        """At rest in the valley."""
        return {"position": rng.uniform(-0.6, -0.4, n), "velocity": np.zeros(n)}

    def step(self, state: Variables, action: FloatArray) -> Variables:
        """Engine and gravity."""
        velocity = state["velocity"] + 0.0015 * action[:, 0] - 0.0025 * np.cos(3 * state["position"])
        velocity = np.clip(velocity, -0.07, 0.07)
        position = np.clip(state["position"] + velocity, -1.2, 0.6)
        velocity = np.where((position == -1.2) & (velocity < 0), 0.0, velocity)
        there = self.success(state)
        return {
            "position": np.where(there, state["position"], position),
            "velocity": np.where(there, state["velocity"], velocity),
        }

    def observe(self, state: Variables) -> FloatArray:
        """Position and velocity, scaled to about 1."""
        return np.stack([state["position"] + 0.5, 20 * state["velocity"]], axis=1)

    def success(self, state: Variables) -> NDArray[np.bool_]:
        """On the hill."""
        arrived: NDArray[np.bool_] = state["position"] >= 0.45
        return arrived

    def degree(self, state: Variables) -> FloatArray:
        """Return how far up the car is."""
        way: FloatArray = np.clip((state["position"] + 0.52) / 0.97, 0.0, 1.0)
        return way
