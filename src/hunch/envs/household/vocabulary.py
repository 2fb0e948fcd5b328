"""Contents of a house: receptacles, objects, where objects fit, and possible operations on them.

Names are those of the engine, in lower case. Which object fits into which receptacle and what can be cleaned,
heated, cooled or sliced is taken from ALFWorld. The numbers of things in a room roughly follow ALFWorld's
room layouts.
"""

from __future__ import annotations

import json
from importlib import resources

_CONTENTS = json.loads(
    (resources.files("hunch.envs.household") / "contents.json").read_text(encoding="utf-8")
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPENABLE = frozenset(["fridge", "cabinet", "microwave", "drawer", "safe"])
MOVABLE_RECEPTACLES = frozenset(["bowl", "box", "cup", "mug", "plate", "pan", "pot"])
LAMPS = ("desklamp", "floorlamp")

HEATABLE = frozenset(["apple", "bread", "cup", "egg", "mug", "plate", "potato", "tomato"])
COOLABLE = HEATABLE | frozenset(["bowl", "lettuce", "pan", "pot", "winebottle"])
CLEANABLE = _words(
    "apple bowl butterknife cloth cup dishsponge egg fork kettle knife ladle lettuce mug pan plate pot "
    "potato soapbar spatula spoon tomato"
)
SLICEABLE = frozenset(["apple", "bread", "egg", "lettuce", "potato", "tomato"])

FITS = {place: _words(objects) for places, objects in _CONTENTS["fits"].items() for place in places.split()}
"""The objects that fit into each receptacle."""

LAMP_STANDS = {
    "desklamp": frozenset(["desk", "sidetable", "dresser", "shelf"]),
    "floorlamp": frozenset(["sidetable", "coffeetable", "dresser", "desk", "shelf"]),
}
"""The possible places of each lamp; lamps cannot be moved."""


def places(thing: str) -> frozenset[str]:
    """Return the receptacles that ``thing`` may be in when a game starts."""
    if thing in LAMP_STANDS:
        return LAMP_STANDS[thing]
    return frozenset(receptacle for receptacle, things in FITS.items() if thing in things)


ABILITIES = {
    "pickupable": frozenset().union(*FITS.values()),
    "isreceptacleobject": MOVABLE_RECEPTACLES,
    "cleanable": CLEANABLE,
    "heatable": HEATABLE,
    "coolable": COOLABLE,
    "sliceable": SLICEABLE,
    "toggleable": frozenset(LAMPS),
}
"""Possible operations on objects, by the engine's predicates."""

ALL_OBJECTS = tuple(sorted(ABILITIES["pickupable"] | ABILITIES["toggleable"]))

RECEPTACLES: dict[str, dict[str, tuple[float, int, int]]] = {
    room: {thing: tuple(numbers) for thing, numbers in things.items()}
    for room, things in _CONTENTS["receptacles"].items()
}
"""By room and receptacle: probability that there is any, and minimum and maximum number."""

OBJECTS: dict[str, dict[str, tuple[float, int]]] = {
    room: {thing: tuple(numbers) for things, numbers in groups.items() for thing in things.split()}
    for room, groups in _CONTENTS["objects"].items()
}
"""By room and object: probability that there is any, and maximum number."""
