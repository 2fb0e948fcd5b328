"""Small worlds of continuous control for reward design, with many copies stepped at once in NumPy."""

from hunch_studies.worlds.rewards.base import Variables, World
from hunch_studies.worlds.rewards.crane import Crane
from hunch_studies.worlds.rewards.docking import Docking
from hunch_studies.worlds.rewards.mountain_car import MountainCar
from hunch_studies.worlds.rewards.point_maze import PointMaze
from hunch_studies.worlds.rewards.reacher import Reacher

__all__ = ["WORLDS", "Crane", "Docking", "MountainCar", "PointMaze", "Reacher", "Variables", "World"]

WORLDS: dict[str, type[World]] = {
    "point-maze": PointMaze,
    "mountain-car": MountainCar,
    "docking": Docking,
    "reacher": Reacher,
    "crane": Crane,
}
"""The worlds by name."""
