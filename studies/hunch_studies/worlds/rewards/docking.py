"""A craft that has to come to rest at its dock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hunch.core import FloatArray
from hunch.rl.cem import CEM
from hunch_studies.worlds.rewards.base import Variables, World, met


class Docking(World):
    """A craft that has to come to rest at its dock.

    Position and speed must both be right at the end, so a reward for success only is nearly always 0.
    """

    version = "2f802d3d9a74b757"
    task = (
        "A craft drifts in a square room from -1 to 1 metre. When the episode ends, after 6 seconds, it has "
        "to lie at its dock: within 0.15 metres of it, and slower than 0.15 metres per second."
    )
    variables: ClassVar[Mapping[str, str]] = {
        "position": "(n, 2), where the craft is after the step, in metres",
        "velocity": "(n, 2), in metres per second",
        "dock": "(n, 2), where it has to be, in metres",
        "action": "(n, 2), the force, from -1 to 1",
    }
    horizon = 30
    learner = CEM(population=128, elites=10, generations=15, spread=0.5, noise=0.2)
    episodes = 1
    sizes = (6, 2)
    degree_description = (
        "0.15 divided by the distance from the dock in metres or by the speed in metres per second at the "
        "end, whichever is larger, and 1 if both are smaller"
    )
    sparse = """import numpy as np

def reward(position, velocity, dock, action):
    near = np.linalg.norm(position - dock, axis=1) < 0.15
    success = (near & (np.linalg.norm(velocity, axis=1) < 0.15)).astype(float)
    return success, {"success": success}
"""
    dense = """import numpy as np

def reward(position, velocity, dock, action):
    distance = -np.linalg.norm(position - dock, axis=1)
    motion = -0.3 * np.linalg.norm(velocity, axis=1)
    return distance + motion, {"distance": distance, "motion": motion}
"""

    def begin(self, n: int, rng: np.random.Generator) -> Variables:
        """In the lower half, drifting; the dock in the upper half."""
        return {
            "position": rng.uniform([-0.9, -0.9], [0.9, -0.3], (n, 2)),
            "velocity": rng.uniform(-0.3, 0.3, (n, 2)),
            "dock": rng.uniform([-0.6, 0.4], [0.6, 0.9], (n, 2)),
        }

    def begin_easily(self, n: int, rng: np.random.Generator) -> Variables:
        """At rest, and within 0.4 metres of the dock, which is anywhere."""
        dock = rng.uniform(-0.6, 0.6, (n, 2))
        return {
            "position": dock + rng.uniform(-0.4, 0.4, (n, 2)) / np.sqrt(2),
            "velocity": np.zeros((n, 2)),
            "dock": dock,
        }

    def step(self, state: Variables, action: FloatArray) -> Variables:
        """Force and friction; the walls hold the craft, and not its speed."""
        velocity = state["velocity"] + 0.2 * (2.0 * action - state["velocity"])
        position = np.clip(state["position"] + 0.2 * velocity, -1.0, 1.0)
        return {**state, "position": position, "velocity": velocity}

    def observe(self, state: Variables) -> FloatArray:
        """Position, velocity, and the way to the dock."""
        return np.hstack([state["position"], state["velocity"], state["dock"] - state["position"]])

    def success(self, state: Variables) -> NDArray[np.bool_]:
        """At the dock, and slow."""
        near = np.linalg.norm(state["position"] - state["dock"], axis=1) < 0.15
        docked: NDArray[np.bool_] = near & (np.linalg.norm(state["velocity"], axis=1) < 0.15)
        return docked

    def degree(self, state: Variables) -> FloatArray:
        """Return how near and slow it is, by the worse of both."""
        near = met(0.15, np.linalg.norm(state["position"] - state["dock"], axis=1))
        return np.minimum(near, met(0.15, np.linalg.norm(state["velocity"], axis=1)))
