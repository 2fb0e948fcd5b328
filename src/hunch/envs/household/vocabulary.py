"""Contents of a house: receptacles, objects, what fits where, and what can be done with it.

Names are the engine's, in lower case. Which object fits into which receptacle and what can be cleaned,
heated, cooled or sliced is taken from ALFWorld. The numbers of things in a room roughly follow ALFWorld's
room layouts.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPENABLE = frozenset(["fridge", "cabinet", "microwave", "drawer", "safe"])
MOVABLE_RECEPTACLES = frozenset(["bowl", "box", "cup", "mug", "plate", "pan", "pot"])
LAMPS = ("desklamp", "floorlamp")

HEATABLE = frozenset(["apple", "bread", "cup", "egg", "mug", "plate", "potato", "tomato"])
COOLABLE = HEATABLE | frozenset(["bowl", "lettuce", "pan", "pot", "winebottle"])
CLEANABLE = frozenset(
    [
        "apple",
        "bowl",
        "butterknife",
        "cloth",
        "cup",
        "dishsponge",
        "egg",
        "fork",
        "kettle",
        "knife",
        "ladle",
        "lettuce",
        "mug",
        "pan",
        "plate",
        "pot",
        "potato",
        "soapbar",
        "spatula",
        "spoon",
        "tomato",
    ]
)
SLICEABLE = frozenset(["apple", "bread", "egg", "lettuce", "potato", "tomato"])

_TABLE = (
    "alarmclock apple baseballbat basketball book bowl box bread butterknife cd candle cellphone "
    "cloth creditcard cup dishsponge egg fork glassbottle handtowel kettle keychain knife ladle "
    "laptop lettuce mug newspaper pan papertowel pen pencil peppershaker plate pot potato "
    "remotecontrol saltshaker soapbar soapbottle spatula spoon spraybottle statue tennisracket "
    "tissuebox toiletpaper toiletpaperroll tomato vase watch wateringcan winebottle"
)
_DRESSER = (
    "alarmclock basketball book bowl box cd candle cellphone cloth creditcard cup glassbottle "
    "keychain laptop mug newspaper pen pencil plate remotecontrol spraybottle statue tennisracket "
    "tissuebox toiletpaper toiletpaperroll vase watch wateringcan winebottle"
)
_SEAT = "basketball book box cellphone cloth creditcard keychain laptop newspaper pillow remotecontrol"

FITS = {
    receptacle: _words(objects)
    for receptacle, objects in {
        "countertop": _TABLE,
        "diningtable": _TABLE,
        "coffeetable": _TABLE,
        "sidetable": _TABLE,
        "dresser": _DRESSER,
        "desk": _DRESSER + " soapbottle",
        "shelf": "alarmclock book bowl box cd candle cellphone cloth creditcard cup dishsponge "
        "glassbottle handtowel kettle keychain mug newspaper papertowel pen pencil peppershaker plate pot "
        "remotecontrol saltshaker soapbar soapbottle spraybottle statue tissuebox toiletpaper "
        "toiletpaperroll vase watch wateringcan winebottle",
        "cabinet": "book bowl box cd candle cloth cup dishsponge glassbottle handtowel kettle ladle mug "
        "newspaper pan peppershaker plate plunger pot saltshaker soapbar soapbottle spraybottle tissuebox "
        "toiletpaper toiletpaperroll vase wateringcan winebottle",
        "drawer": "book butterknife cd candle cellphone cloth creditcard dishsponge fork handtowel "
        "keychain knife ladle newspaper pen pencil peppershaker remotecontrol saltshaker soapbar "
        "soapbottle spatula spoon spraybottle tissuebox toiletpaper toiletpaperroll watch wateringcan",
        "sinkbasin": "apple bowl butterknife cloth cup dishsponge egg fork glassbottle handtowel kettle "
        "knife ladle lettuce mug pan plate pot potato soapbar spatula spoon tomato",
        "garbagecan": "apple bread cd cloth dishsponge egg handtowel lettuce newspaper papertowel pen "
        "pencil potato soapbar soapbottle spraybottle tissuebox toiletpaper toiletpaperroll tomato "
        "winebottle",
        "fridge": "apple bowl bread cup egg glassbottle lettuce mug pan plate pot potato tomato winebottle",
        "microwave": "apple bowl bread cup egg glassbottle mug plate potato tomato",
        "cart": "candle cloth dishsponge handtowel mug papertowel plunger soapbar soapbottle spraybottle "
        "statue tissuebox toiletpaper toiletpaperroll vase",
        "toilet": "candle cloth dishsponge handtowel newspaper papertowel soapbar soapbottle spraybottle "
        "tissuebox toiletpaper toiletpaperroll",
        "sofa": _SEAT,
        "armchair": _SEAT,
        "ottoman": _SEAT,
        "bed": "baseballbat basketball book cellphone laptop newspaper pillow tennisracket",
        "safe": "cd cellphone creditcard keychain statue vase watch",
        "bathtubbasin": "cloth dishsponge handtowel soapbar",
        "stoveburner": "kettle pan pot",
        "coffeemachine": "mug",
        "tvstand": "tissuebox",
        "laundryhamper": "cloth",
        "towelholder": "towel",
        "handtowelholder": "handtowel",
        "toiletpaperhanger": "toiletpaper toiletpaperroll",
        "toaster": "",
    }.items()
}
"""The objects that may be put into a receptacle."""

LAMP_STANDS = {
    "desklamp": frozenset(["desk", "sidetable", "dresser", "shelf"]),
    "floorlamp": frozenset(["sidetable", "coffeetable", "dresser", "desk", "shelf"]),
}
"""Places of lamps, which cannot be moved."""


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
    "kitchen": {
        "cabinet": (1, 3, 8),
        "countertop": (1, 1, 3),
        "drawer": (0.85, 2, 5),
        "stoveburner": (1, 2, 4),
        "fridge": (1, 1, 1),
        "microwave": (1, 1, 1),
        "sinkbasin": (1, 1, 1),
        "garbagecan": (1, 1, 1),
        "coffeemachine": (1, 1, 1),
        "toaster": (1, 1, 1),
        "diningtable": (0.55, 1, 1),
        "shelf": (0.17, 1, 3),
        "sidetable": (0.1, 1, 1),
        "safe": (0.03, 1, 1),
    },
    "living room": {
        "sofa": (1, 1, 2),
        "armchair": (0.9, 1, 2),
        "coffeetable": (0.85, 1, 2),
        "sidetable": (0.8, 1, 3),
        "drawer": (0.77, 2, 8),
        "garbagecan": (0.9, 1, 1),
        "diningtable": (0.47, 1, 1),
        "tvstand": (0.4, 1, 1),
        "shelf": (0.4, 2, 6),
        "dresser": (0.33, 1, 1),
        "cabinet": (0.25, 2, 4),
        "desk": (0.15, 1, 1),
        "ottoman": (0.1, 1, 1),
        "safe": (0.07, 1, 1),
    },
    "bedroom": {
        "bed": (1, 1, 2),
        "drawer": (0.93, 3, 9),
        "garbagecan": (0.9, 1, 1),
        "desk": (0.63, 1, 1),
        "shelf": (0.63, 2, 6),
        "sidetable": (0.63, 1, 2),
        "dresser": (0.5, 1, 1),
        "laundryhamper": (0.27, 1, 1),
        "armchair": (0.2, 1, 1),
        "cabinet": (0.17, 2, 4),
        "safe": (0.13, 1, 1),
    },
    "bathroom": {
        "sinkbasin": (1, 1, 2),
        "countertop": (0.83, 1, 1),
        "toilet": (1, 1, 1),
        "garbagecan": (1, 1, 1),
        "towelholder": (1, 1, 2),
        "handtowelholder": (1, 1, 2),
        "toiletpaperhanger": (1, 1, 1),
        "bathtubbasin": (0.67, 1, 1),
        "cabinet": (0.6, 2, 6),
        "drawer": (0.45, 2, 6),
        "shelf": (0.17, 1, 3),
        "cart": (0.15, 1, 1),
    },
}
"""For each room and receptacle: the probability that there is any, and the minimum and maximum number."""

OBJECTS: dict[str, dict[str, tuple[float, int]]] = {
    "kitchen": {
        **dict.fromkeys(["apple", "bread", "egg", "lettuce", "potato", "tomato"], (0.85, 2)),
        **dict.fromkeys(
            ["bowl", "cup", "mug", "plate", "pan", "pot", "fork", "spoon", "spatula", "knife", "butterknife"],
            (0.85, 2),
        ),
        **dict.fromkeys(["dishsponge", "soapbottle", "saltshaker", "peppershaker"], (0.8, 2)),
        **dict.fromkeys(["kettle", "ladle", "winebottle", "glassbottle"], (0.35, 1)),
        **dict.fromkeys(
            ["papertowel", "vase", "statue", "creditcard", "cellphone", "book", "spraybottle"], (0.2, 2)
        ),
    },
    "living room": {
        **dict.fromkeys(["keychain", "pillow", "creditcard", "laptop", "box", "remotecontrol"], (0.95, 2)),
        "floorlamp": (0.95, 1),
        "statue": (0.9, 2),
        **dict.fromkeys(["newspaper", "vase"], (0.6, 2)),
        **dict.fromkeys(["watch", "wateringcan", "book", "cellphone", "tissuebox"], (0.45, 2)),
        **dict.fromkeys(["candle", "plate", "bowl", "pen", "pencil"], (0.2, 1)),
        "desklamp": (0.2, 1),
    },
    "bedroom": {
        **dict.fromkeys(["book", "keychain", "pillow", "cd", "creditcard", "pen", "pencil"], (0.95, 2)),
        **dict.fromkeys(["laptop", "alarmclock", "cellphone"], (0.95, 2)),
        "desklamp": (0.7, 1),
        **dict.fromkeys(["mug", "bowl", "baseballbat", "basketball"], (0.45, 1)),
        **dict.fromkeys(
            ["tennisracket", "cloth", "tissuebox", "remotecontrol", "statue", "vase", "watch", "box"],
            (0.3, 1),
        ),
    },
    "bathroom": {
        **dict.fromkeys(["soapbar", "soapbottle", "towel", "handtowel", "cloth", "toiletpaper"], (0.95, 2)),
        **dict.fromkeys(["spraybottle", "candle", "toiletpaperroll"], (0.95, 2)),
        "plunger": (0.95, 1),
        **dict.fromkeys(["tissuebox", "dishsponge"], (0.3, 2)),
    },
}
"""For each room and object: the probability that there is any, and the maximum number."""
