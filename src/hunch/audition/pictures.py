"""Pictures with true facts; they are stored here because their environment belongs to the studies.

They are rooms with a red ball, in layouts on which no model of this project was trained. Made by
the module ``pictures`` of the studies.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

import numpy as np

from hunch.audition.question import Bed
from hunch.envs.reading import Schema

BED: Final = Bed("hunch/BabyAI-GoToRedBallNoDists-v0", stored=True, needs=frozenset({"see"}))


class Seen(NamedTuple):
    """A picture as a PNG file, with its facts and the actions from its state to the goal."""

    picture: bytes
    facts: Mapping[str, str]
    left: int


class Stored(NamedTuple):
    """All stored pictures.

    Attributes:
        task: The environment's task.
        near: A sentence that is true at the goal, for models that compare pictures with sentences.
        schema: The fields of the facts.
        seen: The pictures.
    """

    task: str
    near: str
    schema: Schema
    seen: tuple[Seen, ...]

    def draw(self, n: int, seed: int) -> list[Seen]:
        """Draw n different pictures, or all if there are fewer."""
        order = np.random.default_rng(seed).permutation(len(self.seen))
        return [self.seen[i] for i in order[:n]]


@cache
def stored() -> Stored:
    """Return the stored pictures."""
    stored = json.loads((resources.files("hunch.audition") / "pictures.json").read_text(encoding="utf-8"))
    fields = stored["schema"]
    names = list(fields)
    seen = (
        Seen(b64decode(entry["png"]), dict(zip(names, entry["facts"], strict=True)), entry["left"])
        for entry in stored["seen"]
    )
    return Stored(stored["task"], stored["near"], Schema(fields, str), tuple(seen))
