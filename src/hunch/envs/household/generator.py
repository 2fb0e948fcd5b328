"""Generates household games in the style of ALFWorld; they are not games of ALFWorld.

A game is a pure function of its :class:`Recipe`. Goals are pairs of an object and a receptacle (or a lamp); a
fixed share of all pairs is held out for the split ``"unseen"``.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Literal

from hunch.core import HunchError
from hunch.envs.household import vocabulary as v
from hunch.envs.household.goals import Goal, Kind
from hunch.envs.household.problem import Fact, Problem

Split = Literal["train", "unseen"]
Placement = Literal["typical", "uniform"]

RECEPTACLE_RANGE = range(12, 28)
OBJECT_RANGE = range(15, 46)


def _parse(line: str) -> dict[str, float]:
    return {place: float(weight) for place, weight in (entry.split() for entry in line.split(", "))}


_TABLE = json.loads((resources.files("hunch.envs.household") / "typical.json").read_text(encoding="utf-8"))
TYPICAL = {thing: _parse(line) for thing, line in _TABLE.items()}
"""For each object, the weight of each class of receptacle as its place with ``placement="typical"``.

These numbers are our judgement, not data: 6 for the first place to look, 3 for a usual place, 1 for a
possible one, and ``ELSEWHERE`` for any other receptacle that the thing fits into. They make common sense
useful in a generated game; with ``placement="uniform"`` it is useless.
"""
ELSEWHERE = 0.1

_HELD_OUT = 4  # one pair in four is unseen
_TRIES = 10_000
_ROOMS: dict[Kind, tuple[str, ...]] = {
    "pick": tuple(v.RECEPTACLES),
    "picktwo": tuple(v.RECEPTACLES),
    "examine": ("living room", "bedroom"),
    "clean": ("kitchen", "bathroom"),
    "heat": ("kitchen",),
    "cool": ("kitchen",),
}
_TREATABLE = {"clean": v.CLEANABLE, "heat": v.HEATABLE, "cool": v.COOLABLE}


@dataclass(frozen=True, slots=True)
class Recipe:
    """The parameters that determine one game.

    Attributes:
        kind: The kind of task.
        split: Split of the goal: training, or held out.
        placement: Placement of things: at typical places, or anywhere they fit.
        seed: Seed of the pool of games.
        index: Number of the game in the pool; pools of different sizes begin with the same games.
    """

    kind: Kind
    split: Split = "train"
    placement: Placement = "typical"
    seed: int = 0
    index: int = 0

    def __str__(self) -> str:
        return f"{self.kind}-{self.split}-{self.placement}-{self.seed}-{self.index}"


@dataclass(slots=True)
class _Room:
    """A room being furnished: receptacles with class and place, objects with class and receptacle."""

    receptacles: dict[str, tuple[str, str]]
    objects: dict[str, tuple[str, str]]

    def classes(self) -> set[str]:
        return {kind for kind, _ in self.receptacles.values()}


def generate(recipe: Recipe) -> Problem:
    """Return the game of a recipe, which is the same on every machine.

    Goals cycle through the pairs of the split in an order given by the pool's seed. ``placement`` affects
    only the places of objects, not the room, the furniture or the number of objects.
    """
    goals = list(pairs(recipe.kind, recipe.split))
    _stream(replace(recipe, placement="typical", index=-1)).shuffle(goals)
    goal = goals[recipe.index % len(goals)]
    rng = _stream(replace(recipe, placement="typical"))
    room, counts = _furnish(goal, rng)
    template = rng.randrange(2)
    _place(room, counts, goal, recipe.placement, rng)
    return Problem(_objects(room), tuple(sorted(_facts(room))), goal, goal.sentence(template))


@lru_cache(maxsize=16)
def pairs(kind: Kind, split: Split) -> tuple[Goal, ...]:
    """Return the goals of a split: pairs of an object and a receptacle that it can be put into."""
    held_out = split == "unseen"
    return tuple(
        goal
        for goal in (Goal(kind, thing, target) for thing in v.ALL_OBJECTS for target in _targets(kind))
        if _suitable_rooms(goal) and (_checksum(goal) % _HELD_OUT == 0) == held_out
    )


def _checksum(goal: Goal) -> int:
    # The kind does not enter, so that a pair is held out in every kind of task or in none.
    return zlib.crc32(f"{goal.object} {goal.target}".encode())


def _targets(kind: Kind) -> tuple[str, ...]:
    return v.LAMPS if kind == "examine" else tuple(sorted(v.FITS))


def _stream(recipe: Recipe) -> random.Random:
    return random.Random(str(recipe))


def _suitable_rooms(goal: Goal) -> list[str]:
    return [room for room in _ROOMS[goal.kind] if _suits(goal, room)]


def _suits(goal: Goal, room: str) -> bool:
    objects, receptacles = v.OBJECTS[room], v.RECEPTACLES[room]
    if goal.object not in objects or goal.object in v.LAMPS:
        return False
    if goal.object not in _TREATABLE.get(goal.kind, objects):
        return False
    if goal.kind == "examine":
        return goal.target in objects
    return (
        goal.target in receptacles
        and goal.object in v.FITS[goal.target]
        and bool(_starts(goal.object, goal) & set(receptacles))
    )


def _starts(thing: str, goal: Goal) -> frozenset[str]:
    """Where a thing may be at the start: not where the goal wants it, or the game would begin solved."""
    return v.places(thing) - {goal.target} if thing == goal.object else v.places(thing)


def _furnish(goal: Goal, rng: random.Random) -> tuple[_Room, dict[str, int]]:
    """Draw a room with its receptacles, and how many objects of each class it holds."""
    name = rng.choice(_suitable_rooms(goal))
    for _ in range(_TRIES):
        room = _Room(dict(_receptacles(name, goal, rng)), {})
        counts = {
            thing: count for thing, count in _counts(name, goal, rng) if _starts(thing, goal) & room.classes()
        }
        fits = len(room.receptacles) in RECEPTACLE_RANGE and sum(counts.values()) in OBJECT_RANGE
        if fits and goal.object in counts and (goal.kind != "examine" or goal.target in counts):
            return room, counts
    raise HunchError(f"No {name} could be furnished for the goal {goal.sentence(0)!r}.")


def _receptacles(room: str, goal: Goal, rng: random.Random) -> Iterator[tuple[str, tuple[str, str]]]:
    place = 0
    for kind, (probability, least, most) in v.RECEPTACLES[room].items():
        present = rng.random() < probability or kind == goal.target
        for i in range(rng.randint(least, most) if present else 0):
            # Neighbours, such as the drawers of a chest, may be reached from the same place.
            if place == 0 or rng.random() > (0.3 if i else 0.05):
                place += 1
            yield _identifier(kind, i + 1), (kind, f"loc_bar_{place:02}")


def _identifier(kind: str, number: int) -> str:
    # The engine names basins after the "basin" at the end of such an identifier.
    if kind.endswith("basin"):
        return f"{kind.removesuffix('basin')}_bar_{number:02}_bar_{kind}"
    return f"{kind}_bar_{number:02}"


def _counts(room: str, goal: Goal, rng: random.Random) -> Iterator[tuple[str, int]]:
    for thing, (probability, most) in v.OBJECTS[room].items():
        present, count = rng.random() < probability, rng.randint(1, most)
        if thing == goal.object:
            yield thing, max(count, 2) if goal.kind == "picktwo" else count
        elif present or (goal.kind == "examine" and thing == goal.target):
            yield thing, count


def _place(room: _Room, counts: dict[str, int], goal: Goal, placement: Placement, rng: random.Random) -> None:
    for thing, count in counts.items():
        allowed = _starts(thing, goal)
        options = [id for id, (kind, _) in room.receptacles.items() if kind in allowed]
        weights = [_weight(thing, id, room, placement) for id in options]
        for i, receptacle in enumerate(rng.choices(options, weights, k=count)):
            room.objects[_identifier(thing, i + 1)] = (thing, receptacle)


def _weight(thing: str, receptacle: str, room: _Room, placement: Placement) -> float:
    if placement == "uniform":
        return 1.0
    # The weight is that of the class, shared among its members: eight drawers are no likelier than one.
    kind = room.receptacles[receptacle][0]
    members = sum(other == kind for other, _ in room.receptacles.values())
    return TYPICAL[thing].get(kind, ELSEWHERE) / members


def _objects(room: _Room) -> tuple[tuple[str, str], ...]:
    places = {place for _, place in room.receptacles.values()}
    return tuple(
        sorted(
            [("agent1", "agent"), ("loc_bar_00", "location")]
            + [(place, "location") for place in places]
            + [(id, "receptacle") for id in room.receptacles]
            + [(id, "object") for id in room.objects]
            # The engine's rules mention types that a room need not have, so all are declared.
            + [(f"{kind}type", "rtype") for kind in v.FITS]
            + [(f"{thing}type", "otype") for thing in v.ALL_OBJECTS]
        )
    )


def _facts(room: _Room) -> Iterator[Fact]:
    """Yield the facts of a room in the words of the planning problem."""
    yield ("atlocation", "agent1", "loc_bar_00")
    for id, (kind, place) in room.receptacles.items():
        yield ("receptacletype", id, f"{kind}type")
        yield ("receptacleatlocation", id, place)
        if kind in v.OPENABLE:
            yield ("openable", id)
    for id, (thing, receptacle) in room.objects.items():
        yield ("objecttype", id, f"{thing}type")
        yield ("inreceptacle", id, receptacle)
        yield ("objectatlocation", id, room.receptacles[receptacle][1])
        yield from ((ability, id) for ability, things in v.ABILITIES.items() if thing in things)
    for thing in {thing for thing, _ in room.objects.values()}:
        yield from (("cancontain", f"{kind}type", f"{thing}type") for kind in v.FITS if thing in v.FITS[kind])
