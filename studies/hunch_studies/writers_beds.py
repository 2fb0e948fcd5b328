"""The beds of the study of writers, fixed before the first search.

The plain requests were written with FrozenLake8x8, Taxi and CliffWalking, which are none of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True)
class Bed:
    """A problem for the searches.

    Attributes:
        env: Its environment.
        options: Options of the environment.
        unseen: Options of the environment in which the winner of a run is evaluated again.
        floor: Fitness that no program is below, for searches that need numbers from 0.
    """

    env: str
    options: Mapping[str, Any] = field(default_factory=dict)
    unseen: Mapping[str, Any] = field(default_factory=dict)
    floor: float = 0.0


def _control(base: str, episodes: int, floor: float) -> Bed:
    unseen = {"base": base, "episodes": 30, "split": "test"}
    return Bed("hunch/PolicyCode-v0", {"base": base, "episodes": episodes}, unseen, floor)


BEDS: Final[Mapping[str, Bed]] = {
    "CartPole-v1": _control("CartPole-v1", 10, 0.0),
    "MountainCar-v0": _control("MountainCar-v0", 10, -200.0),
    "Acrobot-v1": _control("Acrobot-v1", 5, -500.0),
    "Pendulum-v1": _control("Pendulum-v1", 10, -3300.0),
    "bin packing": Bed(
        "hunch/Heuristic-BinPacking-v0",
        {"items": 40, "instances": 10},
        {"items": 40, "split": "test"},
        -100.0,
    ),
    "FrozenLake's model": Bed("hunch/WorldModelCode-v0", {"base": "hunch/FrozenLake-v0"}),
}
