"""Stored questions of the audition about texts: two recipes for one request, of which one breaks the diet.

python -m hunch_studies.texts src/hunch/audition/texts.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import numpy as np

from hunch.runs.files import write_atomically
from hunch_studies.worlds.recipes import Request, careless, gold, requests

KEPT: Final = 200


def questions() -> list[tuple[str, str, str]]:
    """Draw pairs, the right one first; it is the longer one in every other pair."""
    rng, found = np.random.default_rng(7_000), list[tuple[str, str, str]]()
    asked = [own for own in requests("training") if own.diet != "any"]
    while len(found) < KEPT:
        request = asked[int(rng.integers(len(asked)))]
        better, worse = (careless(request, rng) for _ in range(2))
        longer = len(better.split()) - len(worse.split())
        if obeys(request, better) and not obeys(request, worse) and longer * (-1) ** len(found) > 0:
            found.append((str(request), better, worse))
    return found


def obeys(request: Request, text: str) -> bool:
    """Return whether a recipe has no food that the diet forbids."""
    return gold(request, text, ("diet",)) == 0


if __name__ == "__main__":
    lines = ",\n".join(map(json.dumps, questions()))
    write_atomically(Path(sys.argv[1]), f"[\n{lines}\n]\n".encode())
