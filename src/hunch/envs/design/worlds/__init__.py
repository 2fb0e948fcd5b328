"""Small worlds of continuous control for reward design, with many copies stepped at once in NumPy."""

from hunch.envs.design.worlds.base import Variables, World
from hunch.envs.design.worlds.crane import Crane
from hunch.envs.design.worlds.docking import Docking
from hunch.envs.design.worlds.mountain_car import MountainCar
from hunch.envs.design.worlds.point_maze import PointMaze
from hunch.envs.design.worlds.reacher import Reacher

__all__ = ["WORLDS", "Crane", "Docking", "MountainCar", "PointMaze", "Reacher", "Variables", "World"]

WORLDS: dict[str, type[World]] = {
    "point-maze": PointMaze,
    "mountain-car": MountainCar,
    "docking": Docking,
    "reacher": Reacher,
    "crane": Crane,
}
"""The worlds by name."""
