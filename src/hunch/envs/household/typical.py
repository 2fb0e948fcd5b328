"""Where things usually are: the weights of ``placement="typical"``.

These numbers are our own judgement, not data: 6 for the first place to look, 3 for a usual place, 1 for a
possible one, and ``ELSEWHERE`` for any other receptacle that the thing fits into. They make common sense
useful in a generated game; with ``placement="uniform"`` it is useless.
"""

from __future__ import annotations

import json
from importlib import resources

ELSEWHERE = 0.1


def _parse(line: str) -> dict[str, float]:
    return {place: float(weight) for place, weight in (entry.split() for entry in line.split(", "))}


_TABLE = json.loads((resources.files("hunch.envs.household") / "typical.json").read_text())
TYPICAL = {thing: _parse(line) for thing, line in _TABLE.items()}
"""For each object, the weight of each class of receptacle as its place at the start."""
