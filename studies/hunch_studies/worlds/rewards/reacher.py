"""An arm of two links; after Gymnasium's Reacher, without MuJoCo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hunch.core import FloatArray
from hunch.rl.cem import CEM
from hunch_studies.worlds.rewards.base import Variables, World, met


class Reacher(World):
    """An arm of two links, each turned by a motor of its own; after Gymnasium's Reacher, without MuJoCo.

    The links do not affect each other: a motor turns only its own joint.
    """

    version = "ea9d1a031802cf16"
    task = (
        "An arm of two links of 0.5 metres has to bring its fingertip to a target. When the episode ends, "
        "after 5 seconds, the fingertip has to be within 0.1 metres of the target, and the joints slower "
        "than 0.5 radians per second together."
    )
    variables: ClassVar[Mapping[str, str]] = {
        "angles": "(n, 2), of the joints after the step, in radians",
        "speeds": "(n, 2), of the joints, in radians per second",
        "fingertip": "(n, 2), where it is, in metres",
        "target": "(n, 2), where it has to be, in metres",
        "action": "(n, 2), the torques, from -1 to 1",
    }
    horizon = 50
    learner = CEM(generations=60, spread=0.1, noise=0.1)
    episodes = 6
    sizes = (6, 2)
    degree_description = (
        "at the end, 0.1 divided by the distance from the target in metres, or 0.5 divided by the speed in "
        "radians per second, whichever is less, and 1 if both are more"
    )
    sparse = """import numpy as np

def reward(angles, speeds, fingertip, target, action):
    near = np.linalg.norm(fingertip - target, axis=1) < 0.1
    success = (near & (np.linalg.norm(speeds, axis=1) < 0.5)).astype(float)
    return success, {"success": success}
"""
    dense = """import numpy as np

def reward(angles, speeds, fingertip, target, action):
    distance = -np.linalg.norm(fingertip - target, axis=1)
    motion = -0.05 * np.linalg.norm(speeds, axis=1)
    return distance + motion, {"distance": distance, "motion": motion}
"""

    def begin(self, n: int, rng: np.random.Generator) -> Variables:
        """At rest, hanging down; the target above on the right."""
        angles = np.array([-1.5, 0.5]) + rng.uniform(-0.1, 0.1, (n, 2))
        target = rng.uniform([0.1, 0.4], [0.6, 0.8], (n, 2))
        return {"angles": angles, "speeds": np.zeros((n, 2)), "fingertip": _tip(angles), "target": target}

    def step(self, state: Variables, action: FloatArray) -> Variables:
        """Motors and friction."""
        speeds = state["speeds"] + 0.1 * (10.0 * action - state["speeds"])
        angles = state["angles"] + 0.1 * speeds
        return {**state, "angles": angles, "speeds": speeds, "fingertip": _tip(angles)}

    def observe(self, state: Variables) -> FloatArray:
        """Angles, speeds scaled to about 1, and the way to the target."""
        return np.hstack([state["angles"], 0.3 * state["speeds"], state["target"] - state["fingertip"]])

    def success(self, state: Variables) -> NDArray[np.bool_]:
        """At the target, and slow."""
        near = np.linalg.norm(state["fingertip"] - state["target"], axis=1) < 0.1
        reached: NDArray[np.bool_] = near & (np.linalg.norm(state["speeds"], axis=1) < 0.5)
        return reached

    def degree(self, state: Variables) -> FloatArray:
        """Return how near and slow it is, by the worse of both."""
        near = met(0.1, np.linalg.norm(state["fingertip"] - state["target"], axis=1))
        return np.minimum(near, met(0.5, np.linalg.norm(state["speeds"], axis=1)))


def _tip(angles: FloatArray) -> FloatArray:
    """Where the fingertip is, shape (n, 2), of joints at some angles, shape (n, 2)."""
    both = np.cumsum(angles, axis=1)
    tip: FloatArray = 0.5 * np.stack([np.cos(both).sum(axis=1), np.sin(both).sum(axis=1)], axis=1)
    return tip
