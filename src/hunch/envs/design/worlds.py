"""Small worlds of continuous control for reward design, with many copies stepped at once in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hunch.core import FloatArray
from hunch.rl.cem import CEM

Variables: TypeAlias = dict[str, FloatArray]
"""The state of n worlds: an array of shape (n,) or (n, size) per variable."""


SMALL = CEM(generations=20, spread=0.1, noise=0.1)
"""A learner that takes small steps."""


class World(Protocol):
    """n worlds side by side.

    Attributes:
        task: The task in a sentence.
        variables: The variables that a reward may read, with shape, meaning and unit.
        horizon: Steps of an episode.
        learner: The inner learner.
        episodes: Episodes per candidate; all candidates of a generation have the same first states, so that
            they can be compared.
        sizes: Length of observation and action of a policy.
        degree_told: The degree of success in words.
        sparse: A reward program that rewards success only.
        dense: A reward program written by hand.
    """

    task: ClassVar[str]
    variables: ClassVar[Mapping[str, str]]
    horizon: ClassVar[int]
    learner: ClassVar[CEM]
    episodes: ClassVar[int]
    sizes: ClassVar[tuple[int, int]]
    degree_told: ClassVar[str]
    sparse: ClassVar[str]
    dense: ClassVar[str]

    def begin(self, n: int, rng: np.random.Generator) -> Variables:
        """Draw n first states."""
        ...

    def step(self, state: Variables, action: FloatArray) -> Variables:
        """Return the state after actions in [-1, 1], shape (n, action)."""
        ...

    def observe(self, state: Variables) -> FloatArray:
        """Return the observation of a policy, shape (n, observation)."""
        ...

    def success(self, state: Variables) -> NDArray[np.bool_]:
        """Return whether the task is solved, shape (n,)."""
        ...

    def degree(self, state: Variables) -> FloatArray:
        """Return how far the task is solved, from 0 to 1, shape (n,)."""
        ...


class PointMaze(World):
    """A point with mass in a square room with a wall, which has a gap at its right end."""

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
    degree_told = "0.15 metres divided by the distance from the goal at the end, and 1 if it is nearer"
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
        return _met(0.15, np.linalg.norm(state["position"] - state["goal"], axis=1))


class MountainCar(World):
    """Gymnasium's MountainCarContinuous, with episodes of 200 steps; a car that has arrived stays."""

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
    degree_told = "the share of the way from the valley to the top at the end"
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


class Docking(World):
    """A craft that has to come to rest at its dock.

    Position and speed must both be right at the end, so a reward for success only is nearly always 0.
    """

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
    degree_told = (
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
        near = _met(0.15, np.linalg.norm(state["position"] - state["dock"], axis=1))
        return np.minimum(near, _met(0.15, np.linalg.norm(state["velocity"], axis=1)))


class Reacher(World):
    """An arm of two links, each turned by a motor of its own; after Gymnasium's Reacher, without MuJoCo.

    The links do not affect each other: a motor turns only its own joint.
    """

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
    degree_told = (
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
        near = _met(0.1, np.linalg.norm(state["fingertip"] - state["target"], axis=1))
        return np.minimum(near, _met(0.5, np.linalg.norm(state["speeds"], axis=1)))


def _met(asked: float, values: FloatArray) -> FloatArray:
    """Return how far values meet a limit: 1 up to it, then less in proportion, shape (n,)."""
    share: FloatArray = asked / np.maximum(values, asked)
    return share


def _tip(angles: FloatArray) -> FloatArray:
    """Where the fingertip is, shape (n, 2), of joints at some angles, shape (n, 2)."""
    both = np.cumsum(angles, axis=1)
    tip: FloatArray = 0.5 * np.stack([np.cos(both).sum(axis=1), np.sin(both).sum(axis=1)], axis=1)
    return tip


WORLDS: dict[str, type[World]] = {
    "point-maze": PointMaze,
    "mountain-car": MountainCar,
    "docking": Docking,
    "reacher": Reacher,
}
"""The worlds by name."""
