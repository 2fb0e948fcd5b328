"""The rules of the kitchen: a robot with one hand, places in a room, things on or in them.

A primitive action is a step on the floor, or one attempt of the hand, which sometimes slips. With a
disturbance, an attempt may knock the thing away to another place, and somebody may move things.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

Cell: TypeAlias = tuple[int, int]
"""Row from the top and column from the left, both 0 to 5."""

SIZE: Final = 6
PLACES: Final[dict[str, Cell]] = {
    "fridge": (0, 0),
    "sink": (0, 3),
    "counter": (1, 5),
    "table": (2, 2),
    "drawer": (4, 5),
    "bin": (5, 0),
    "person": (5, 3),
}
"""The cell of each place; no floor cell is next to two places."""
CONTAINERS: Final = ("fridge", "drawer")
SURFACES: Final = ("sink", "counter", "table")
"""Surfaces on which things may lie at the start, and to which they may roll."""
HOMES: Final[dict[str, str]] = {
    "apple": "",
    "orange": "",
    "sponge": "",
    "cup": "",
    "cola": "fridge",
    "water": "fridge",
    "chips": "drawer",
}
"""Things by name, each with its container at the start; "" for any surface."""
THINGS: Final = tuple(HOMES)
HAND, NOWHERE = "hand", "nowhere"
ABSENT: Final = 0.5
"""Probability that a thing is missing in an episode (ours)."""
MOVES: Final[dict[str, Cell]] = {
    "go north": (-1, 0),
    "go south": (1, 0),
    "go east": (0, 1),
    "go west": (0, -1),
}
RELEASE, OPEN, DONE = "release", "open", "done"
GRASPS: Final = {f"grasp the {thing}": thing for thing in THINGS}
ACTIONS: Final = (*MOVES, *GRASPS, DONE, OPEN, RELEASE)
SLIP: Final = 0.1
"""Probability that an attempt of the hand has no effect (ours)."""
MEDDLING: Final = 0.05
"""Probability per step that somebody moves a thing, as a fraction of the disturbance (ours)."""
FLOOR: Final = tuple(
    (row, column) for row in range(SIZE) for column in range(SIZE) if (row, column) not in PLACES.values()
)


@dataclass(frozen=True)
class Scene:
    """The state of the kitchen.

    Attributes:
        robot: Cell of the robot.
        where: The place of each thing, in the order of :data:`THINGS`; ``"hand"`` for the one that is held,
            ``"nowhere"`` for a missing one.
        opened: The containers that are open, sorted.
    """

    robot: Cell
    where: tuple[str, ...]
    opened: tuple[str, ...] = ()

    @property
    def held(self) -> str | None:
        """The thing in the robot's hand; None if it is empty."""
        return THINGS[self.where.index(HAND)] if HAND in self.where else None

    @property
    def beside(self) -> str | None:
        """The place next to the robot; None if there is none."""
        row, column = self.robot
        return next((p for p, (r, c) in PLACES.items() if abs(r - row) + abs(c - column) == 1), None)

    def place_of(self, thing: str) -> str:
        """Return the place of a thing."""
        return self.where[THINGS.index(thing)]

    def closed(self, place: str | None) -> bool:
        """Return whether a place is a container that is closed."""
        return place in CONTAINERS and place not in self.opened

    def seen(self, thing: str) -> bool:
        """Return whether a thing is visible: not missing, and not in a closed container."""
        place = self.place_of(thing)
        return place != NOWHERE and not self.closed(place)

    def with_thing(self, thing: str, place: str) -> Scene:
        """Return the same scene with a thing at another place."""
        spots = list(self.where)
        spots[THINGS.index(thing)] = place
        return replace(self, where=tuple(spots))


def draw(rng: np.random.Generator) -> Scene:
    """Return a start scene: all containers are closed, the hand is empty, some things are missing."""
    spots = [home or SURFACES[rng.integers(len(SURFACES))] for home in HOMES.values()]
    where = tuple(NOWHERE if rng.random() < ABSENT else spot for spot in spots)
    return Scene(FLOOR[rng.integers(len(FLOOR))], where)


def exists(scene: Scene) -> bool:
    """Return whether there is such a scene: the robot on the floor, each thing somewhere, one in the hand."""
    places = {*PLACES, HAND, NOWHERE}
    things = len(scene.where) == len(THINGS) and all(place in places for place in scene.where)
    opened = scene.opened == tuple(place for place in sorted(CONTAINERS) if place in scene.opened)
    return scene.robot in FLOOR and things and scene.where.count(HAND) <= 1 and opened


def step(scene: Scene, action: str, rng: np.random.Generator, disturbance: float = 0.0) -> tuple[Scene, str]:
    """Take a primitive action.

    Args:
        scene: The scene before the action.
        action: One of :data:`ACTIONS`; an impossible action changes nothing.
        rng: Random generator.
        disturbance: Probability that an attempt fails and knocks the thing away, or that a container sticks.

    Returns:
        The scene after the action, and what happened, in words.
    """
    slips, fails, meddles = rng.random(3)
    scene, event = _tried(scene, action, rng, slips < SLIP, fails < disturbance)
    if meddles < disturbance * MEDDLING:
        lying = [thing for thing, place in zip(THINGS, scene.where, strict=True) if place in SURFACES]
        if lying:
            thing = lying[rng.integers(len(lying))]
            place = _other(scene.place_of(thing), rng)
            return scene.with_thing(thing, place), f"{event}\nSomebody moves the {thing}.".strip()
    return scene, event


def _tried(
    scene: Scene, action: str, rng: np.random.Generator, slips: bool, fails: bool
) -> tuple[Scene, str]:
    """The action itself."""
    beside = scene.beside
    if action in MOVES:
        row, column = scene.robot[0] + MOVES[action][0], scene.robot[1] + MOVES[action][1]
        return (replace(scene, robot=(row, column)) if (row, column) in FLOOR else scene), ""
    if action in GRASPS:
        thing = GRASPS[action]
        if scene.held or beside is None or scene.place_of(thing) != beside or scene.closed(beside):
            return scene, "There is nothing to grasp."
        if fails:
            return scene.with_thing(thing, _other(beside, rng)), f"The {thing} rolls away."
        if slips:
            return scene, f"The {thing} slips."
        return scene.with_thing(thing, HAND), f"You hold the {thing}."
    if action == RELEASE:
        held = scene.held
        if held is None or beside is None or scene.closed(beside):
            return scene, "There is nothing to put down, or nowhere."
        if slips:
            return scene, f"The {held} sticks to the hand."
        place = _other(beside, rng) if fails else beside
        return scene.with_thing(held, place), f"The {held} {'rolls away' if fails else 'is put down'}."
    if action == OPEN and scene.closed(beside):
        if fails:
            return scene, f"The {beside} sticks."
        return replace(scene, opened=tuple(sorted((*scene.opened, str(beside))))), f"The {beside} is open."
    return scene, ""


def _other(place: str, rng: np.random.Generator) -> str:
    """Return another place on which a thing can lie."""
    others = [surface for surface in SURFACES if surface != place]
    return others[rng.integers(len(others))]


def described(scene: Scene) -> str:
    """Describe in words what the robot knows about the scene."""
    row, column = scene.robot
    beside = f", beside the {scene.beside}" if scene.beside else ""
    lines = [
        f"You stand at row {row}, column {column}{beside}.",
        f"You hold {f'the {scene.held}' if scene.held else 'nothing'}.",
    ]
    for place in PLACES:
        if scene.closed(place):
            lines.append(f"The {place} is closed.")
            continue
        things = [f"the {t}" for t, where in zip(THINGS, scene.where, strict=True) if where == place]
        how = f"The {place} is open, with" if place in CONTAINERS else f"At the {place}:"
        if things or place in CONTAINERS:
            lines.append(f"{how} {listed(things)}.")
    return "\n".join(lines)


def consequences(scene: Scene) -> dict[str, str]:
    """Say of each action but ``done`` what it would do if nothing fails, as far as the robot can see it."""
    outcomes: dict[str, str] = {}
    for move, (down, right) in MOVES.items():
        there = replace(scene, robot=(scene.robot[0] + down, scene.robot[1] + right))
        beside = f", beside the {there.beside}" if there.beside else ""
        row, column = there.robot
        outcomes[move] = (
            f"to row {row}, column {column}{beside}" if there.robot in FLOOR else "the way is blocked"
        )
    for grasp, thing in GRASPS.items():
        place = scene.place_of(thing)
        if place == HAND:
            outcomes[grasp] = "you hold it"
        elif not scene.seen(thing):
            outcomes[grasp] = "it is not in sight"
        elif place != scene.beside:
            outcomes[grasp] = f"it is at the {place}, out of reach"
        else:
            outcomes[grasp] = "the hand is full" if scene.held else "it is within reach"
    closed = scene.closed(scene.beside)
    outcomes[OPEN] = f"the {scene.beside} is closed" if closed else "there is nothing to open"
    can_release = scene.held is not None and scene.beside is not None and not closed
    outcomes[RELEASE] = (
        f"at the {scene.beside}" if can_release else "there is nothing to put down, or nowhere"
    )
    return outcomes


def listed(words: Sequence[str]) -> str:
    """Join words to a list in a sentence."""
    return " and ".join(words) if words else "nothing in it"


def grid(scene: Scene) -> list[str]:
    """Return the map as lines: @ for the robot, a letter for each place, a capital for a closed container."""
    cells = [["."] * SIZE for _ in range(SIZE)]
    for place, (row, column) in PLACES.items():
        cells[row][column] = place[0].upper() if scene.closed(place) else place[0]
    cells[scene.robot[0]][scene.robot[1]] = "@"
    return ["".join(row) for row in cells]
