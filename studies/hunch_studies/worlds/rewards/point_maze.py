"""A point with mass in a room with a wall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hunch.core import FloatArray
from hunch_studies.worlds.rewards.base import SMALL, Variables, World, met


class PointMaze(World):
    """A point with mass in a square room with a wall, which has a gap at its right end."""

    version = "7865372c0ac0a6dd"
    task = (
        "A point with mass moves in a square room from -1 to 1 metre. A wall along y = 0 reaches from the "
        "left side to x = 0.4. The point starts below the wall on the left; it has to be within 0.15 metres "
        "of the goal, above the wall on the right, when the episode ends."
    )
    variables: ClassVar[Mapping[str, str]] = {
        "position": "(n, 2), where the point is after the step, in metres",
        "velocity": "(n, 2), in metres a second",
        "goal": "(n, 2), where it has to be, in metres",
        "action": "(n, 2), the force, from -1 to 1",
    }
    horizon = 60
    learner = SMALL
    episodes = 6
    sizes = (6, 2)
    degree_description = "0.15 metres divided by the distance from the goal at the end, and 1 if it is nearer"
    sparse = """import numpy as np

def reward(position, velocity, goal, action):
    success = (np.linalg.norm(position - goal, axis=1) < 0.15).astype(float)
    return success, {"success": success}
"""
    dense = """import numpy as np

def reward(position, velocity, goal, action):
    distance = -np.linalg.norm(position - goal, axis=1)
    effort = -0.01 * np.sum(action ** 2, axis=1)
    return distance + effort, {"distance": distance, "effort": effort}
"""

    def begin(self, n: int, rng: np.random.Generator) -> Variables:
        """Below the wall on the left; the goal above it on the right."""
        return {
            "position": rng.uniform([-0.9, -0.9], [-0.3, -0.3], (n, 2)),
            "velocity": np.zeros((n, 2)),
            "goal": rng.uniform([0.3, 0.3], [0.9, 0.9], (n, 2)),
        }

    def step(self, state: Variables, action: FloatArray) -> Variables:
        """Force and friction; walls stop the motion across them."""
        velocity = state["velocity"] + 0.1 * (2.0 * action - state["velocity"])
        position = np.clip(state["position"] + 0.1 * velocity, -1.0, 1.0)
        crosses = (position[:, 1] > 0) != (state["position"][:, 1] > 0)
        blocked = crosses & (position[:, 0] < 0.4)
        position[blocked, 1] = state["position"][blocked, 1]
        velocity = (position - state["position"]) / 0.1
        return {**state, "position": position, "velocity": velocity}

    def observe(self, state: Variables) -> FloatArray:
        """Position, velocity, and the way to the goal."""
        return np.hstack([state["position"], state["velocity"], state["goal"] - state["position"]])

    def success(self, state: Variables) -> NDArray[np.bool_]:
        """Near the goal."""
        near: NDArray[np.bool_] = np.linalg.norm(state["position"] - state["goal"], axis=1) < 0.15
        return near

    def degree(self, state: Variables) -> FloatArray:
        """Return how near the point is."""
        return met(0.15, np.linalg.norm(state["position"] - state["goal"], axis=1))
