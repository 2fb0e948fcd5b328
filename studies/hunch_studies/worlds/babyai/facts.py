"""What a picture of a one-room level with a red ball shows, as facts and as sentences."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hunch.envs.reading import Schema
from hunch_studies.worlds.babyai.words import describe

SIDE: Final = 8
"""Cells of a room's side, with its walls."""
FACING: Final = ("right", "down", "left", "up")
"""Names of the headings, in the order of the package ``minigrid``."""
TARGET: Final = "red ball"
_WALL: Final = SimpleNamespace(type="wall", color="grey")
_DUSK: Final = np.array([[0.7, 0.05, 0.1], [0.1, 0.85, 0.05], [0.05, 0.1, 0.75]])
"""Red, green and blue before, in rows, to those after it."""
Pixels = NDArray[np.uint8]
_INSIDE: Final = range(1, SIDE - 1)


def at(what: str, line: str, number: int | str) -> str:
    """Return the sentence that something is in a row or column."""
    return f"The {what} is in {line} {number}."


def faces(way: str) -> str:
    """Return the sentence about the agent's heading."""
    return f"The agent faces {way}."


def steps_from(what: str, number: int) -> str:
    """Return the sentence about the agent's distance in cells, along rows and columns."""
    return f"The agent is {number} step{'s' * (number != 1)} from the {what}."


def facts(level: Any) -> dict[str, str]:
    """Return the true facts of a level of ``minigrid`` with a red ball, which may be carried.

    Only a test of a reader, and the rule that stands for a perfect one, may use them.
    """
    (x, y), cells = map(int, level.agent_pos), enumerate(level.grid.grid)
    balls = [divmod(i, level.width)[::-1] for i, thing in cells if thing and name_of(thing) == TARGET]
    there = balls[0] if balls else ("none", "none")
    own = {"agent's column": x, "agent's row": y, "agent's heading": FACING[level.agent_dir]}
    return {
        name: str(value) for name, value in {**own, "ball's column": there[0], "ball's row": there[1]}.items()
    }


def name_of(thing: Any) -> str:
    """Return colour and kind of a thing."""
    return f"{thing.color} {thing.type}"


def told(known: Mapping[str, str]) -> str:
    """Return the observation of BabyAI-Text in an 8 x 8 room where these facts hold, and nothing else is."""
    edge = {0, SIDE - 1}
    grid: list[Any] = [_WALL if edge & {*divmod(i, SIDE)} else None for i in range(SIDE * SIDE)]
    here = int(known["agent's column"]), int(known["agent's row"])
    carried = None
    if "none" in (known["ball's column"], known["ball's row"]):
        carried = SimpleNamespace(type="ball", color="red")
    elif (there := (int(known["ball's column"]), int(known["ball's row"]))) != here:
        grid[there[1] * SIDE + there[0]] = SimpleNamespace(type="ball", color="red")
    room = SimpleNamespace(width=SIDE, height=SIDE, grid=grid)
    heading = FACING.index(known["agent's heading"])
    return "\n".join(
        describe(SimpleNamespace(agent_pos=here, agent_dir=heading, grid=room, carrying=carried))
    )


def at_dusk(pixels: Pixels) -> Pixels:
    """Return a picture in another skin: colours weakened and mixed, and noise that the picture fixes."""
    height, width, _ = pixels.shape
    noise = np.random.default_rng(zlib.crc32(pixels.tobytes())).normal(0, 20, (height, width, 3))
    grain = noise[::4, ::4].repeat(4, 0).repeat(4, 1)[:height, :width]
    seen: Pixels = (pixels @ _DUSK + grain).clip(0, 255).astype(np.uint8)
    return seen


def _lines(what: str, line: str) -> dict[str, str]:
    return {str(n): at(what, line, n) for n in _INSIDE}


SCHEMA: Final = Schema(
    {
        "agent's column": _lines("agent", "column"),
        "agent's row": _lines("agent", "row"),
        "agent's heading": {way: faces(way) for way in FACING},
        "ball's column": _lines(TARGET, "column"),
        "ball's row": _lines(TARGET, "row"),
    },
    told,
)
"""The facts of the levels whose mission is to go to the red ball."""
