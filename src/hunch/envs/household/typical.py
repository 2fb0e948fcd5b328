"""Where things usually are: the weights of ``placement="typical"``.

These numbers are our own judgement, not data: 6 for the first place to look, 3 for a usual place, 1 for a
possible one, and ``ELSEWHERE`` for any other receptacle that the thing fits into. They make common sense
useful in a generated game; with ``placement="uniform"`` it is useless.
"""

from __future__ import annotations

ELSEWHERE = 0.1

_WEIGHTS = {
    "alarmclock": "sidetable 6, desk 3, dresser 3, shelf 3",
    "apple": "fridge 6, countertop 3, diningtable 3, garbagecan 1, sinkbasin 1",
    "baseballbat": "bed 6",
    "basketball": "bed 3, sofa 1, dresser 1, armchair 1",
    "book": "shelf 6, desk 3, bed 3, sidetable 3, coffeetable 3, sofa 1, drawer 1",
    "bowl": "cabinet 6, countertop 3, diningtable 3, sinkbasin 1, fridge 1, shelf 1, desk 1",
    "box": "sofa 3, coffeetable 3, armchair 1, diningtable 1, dresser 1, shelf 1, cabinet 1",
    "bread": "countertop 6, diningtable 3, fridge 3",
    "butterknife": "drawer 6, countertop 3, sinkbasin 3, diningtable 1",
    "candle": "countertop 3, shelf 3, toilet 3, cabinet 1, drawer 1, coffeetable 3, cart 1",
    "cd": "desk 6, shelf 3, drawer 3, sidetable 1, garbagecan 1",
    "cellphone": "desk 3, sidetable 3, bed 3, sofa 3, coffeetable 3, dresser 1, countertop 3",
    "cloth": "laundryhamper 6, cabinet 3, drawer 3, bathtubbasin 3, countertop 3, shelf 1",
    "creditcard": "desk 3, dresser 3, sidetable 3, coffeetable 3, drawer 1, safe 1, countertop 3, sofa 1",
    "cup": "cabinet 6, countertop 3, sinkbasin 3, fridge 1, microwave 1, diningtable 3",
    "desklamp": "desk 6, sidetable 3, dresser 1",
    "dishsponge": "sinkbasin 6, countertop 3, cabinet 1, drawer 1, bathtubbasin 1",
    "egg": "fridge 6, countertop 1, garbagecan 1, sinkbasin 1",
    "floorlamp": "sidetable 3, coffeetable 1, dresser 1",
    "fork": "drawer 6, sinkbasin 3, diningtable 3, countertop 3",
    "glassbottle": "cabinet 3, countertop 3, fridge 3, shelf 1",
    "handtowel": "handtowelholder 6, countertop 1, cabinet 1",
    "kettle": "stoveburner 6, countertop 3, cabinet 3, shelf 1",
    "keychain": "sidetable 6, drawer 3, dresser 3, desk 3, coffeetable 3, safe 1, sofa 1",
    "knife": "drawer 6, countertop 6, sinkbasin 1, diningtable 1",
    "ladle": "drawer 6, countertop 3, cabinet 1, sinkbasin 1",
    "laptop": "desk 6, bed 3, sofa 3, coffeetable 3, diningtable 1, armchair 1",
    "lettuce": "fridge 6, countertop 3, sinkbasin 1, garbagecan 1, diningtable 1",
    "mug": "coffeemachine 6, cabinet 6, countertop 3, sinkbasin 3, desk 3, shelf 1, microwave 1",
    "newspaper": "coffeetable 6, sofa 3, armchair 3, sidetable 1, garbagecan 1, diningtable 1",
    "pan": "stoveburner 6, cabinet 3, countertop 3, sinkbasin 1",
    "papertowel": "countertop 6, garbagecan 1",
    "pen": "desk 6, drawer 3, shelf 1, sidetable 1, dresser 1",
    "pencil": "desk 6, drawer 3, shelf 1, sidetable 1, garbagecan 1",
    "peppershaker": "countertop 6, cabinet 3, diningtable 3, drawer 1, shelf 1",
    "pillow": "bed 6, sofa 6, armchair 3, ottoman 1",
    "plate": "cabinet 6, countertop 3, diningtable 3, sinkbasin 3, shelf 1, fridge 1",
    "plunger": "cabinet 3, cart 3",
    "pot": "stoveburner 6, cabinet 3, countertop 3, sinkbasin 1, fridge 1",
    "potato": "countertop 3, fridge 3, sinkbasin 3, garbagecan 1, microwave 1",
    "remotecontrol": "sofa 6, coffeetable 6, armchair 3, sidetable 3, drawer 1, dresser 1",
    "saltshaker": "countertop 6, cabinet 3, diningtable 3, drawer 1, shelf 1",
    "soapbar": "sinkbasin 6, bathtubbasin 6, countertop 3, toilet 1, cabinet 1",
    "soapbottle": "countertop 6, cabinet 3, toilet 1, shelf 1, drawer 1",
    "spatula": "drawer 6, countertop 3, sinkbasin 3, diningtable 1",
    "spoon": "drawer 6, sinkbasin 3, diningtable 3, countertop 3",
    "spraybottle": "cabinet 6, countertop 3, toilet 3, shelf 1, garbagecan 1",
    "statue": "shelf 6, coffeetable 3, dresser 3, sidetable 3, diningtable 1",
    "tennisracket": "bed 3, dresser 1, sidetable 1",
    "tissuebox": "coffeetable 3, sidetable 3, toilet 3, countertop 3, tvstand 1, shelf 1, cabinet 1",
    "toiletpaper": "toilet 6, toiletpaperhanger 6, cabinet 3, drawer 1, countertop 1",
    "toiletpaperroll": "toiletpaperhanger 6, toilet 3, garbagecan 3, cabinet 1",
    "tomato": "fridge 6, countertop 3, sinkbasin 1, diningtable 1, garbagecan 1",
    "towel": "towelholder 6",
    "vase": "shelf 6, coffeetable 3, sidetable 3, diningtable 3, countertop 1, cabinet 1",
    "watch": "sidetable 3, dresser 3, drawer 3, desk 1, coffeetable 3, safe 1, shelf 1",
    "wateringcan": "shelf 3, sidetable 3, coffeetable 1, cabinet 1, drawer 1",
    "winebottle": "fridge 3, cabinet 3, countertop 3, diningtable 1, garbagecan 1, shelf 1",
}


def _parse(line: str) -> dict[str, float]:
    return {place: float(weight) for place, weight in (entry.split() for entry in line.split(", "))}


TYPICAL = {thing: _parse(line) for thing, line in _WEIGHTS.items()}
"""For each object, the weight of each class of receptacle as its place at the start."""
