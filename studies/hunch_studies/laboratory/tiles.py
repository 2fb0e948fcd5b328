"""A programmer's reader of rooms with a red ball: the nearest known tile of each cell; and the distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from hunch.core import EvidenceLevel, Transition
from hunch.lm import picture
from hunch.lm.backends.seeing import opened
from hunch.roles.reward.rewarded import RewardSource
from hunch_studies.laboratory import clip
from hunch_studies.worlds.babyai.facts import FACING, SCHEMA, SIDE
from hunch_studies.worlds.babyai.words import HEADINGS


@cache
def tiles() -> tuple[clip.Pixels, tuple[str, ...]]:
    """Return the tiles of plain pictures, (n, 192), and what each is: a heading, the ball, or other."""
    known: dict[bytes, str] = {}
    for room in clip.scenes("tiles", 400):
        for cell, tile in cells(room.picture).items():
            what = "other"
            if cell == (room.facts.get("agent's column"), room.facts.get("agent's row")):
                what = room.facts["agent's heading"]
            elif cell == (room.facts.get("ball's column"), room.facts.get("ball's row")):
                what = "ball"
            if room.facts:
                known[tile.tobytes()] = what
    return np.stack([np.frombuffer(tile, np.uint8) for tile in known]), tuple(known.values())


def cells(pixels: clip.Pixels) -> dict[tuple[str, str], clip.Pixels]:
    """Return the tile of each cell inside the walls, by column and row, (192,)."""
    side = clip.PIXELS // 8
    inside = range(1, 7)
    return {
        (str(x), str(y)): pixels[side * y : side * (y + 1), side * x : side * (x + 1)].ravel()
        for x in inside
        for y in inside
    }


def by_tiles(pixels: clip.Pixels) -> dict[str, str]:
    """Read a picture as a programmer would: the agent and the ball are where a tile is most like theirs."""
    known, names = tiles()
    own = cells(clip.small(pixels))
    apart = np.stack([np.square(known.astype(int) - tile.astype(int)).sum(1) for tile in own.values()])
    agents = [i for i, name in enumerate(names) if name in FACING]
    balls = [i for i, name in enumerate(names) if name == "ball"]
    where = list(own)
    cell, best = np.unravel_index(int(apart[:, agents].argmin()), (len(own), len(agents)))
    ball = where[int(apart[:, balls].min(1).argmin())]
    read = (*where[int(cell)], names[agents[int(best)]], *ball)
    return dict(zip(SCHEMA.fields, read, strict=True))


def facts_of(image: str) -> dict[str, str]:
    """Read a picture that is a data URL."""
    return by_tiles(np.asarray(opened(image)))


def actions_away(facts: Mapping[str, str]) -> int:
    """Return how many actions the agent needs until it faces the ball in a room with nothing else."""
    start = (int(facts["agent's column"]), int(facts["agent's row"]), FACING.index(facts["agent's heading"]))
    ball, seen, frontier = (int(facts["ball's column"]), int(facts["ball's row"])), {start}, [start]
    for n in range(99):
        following = []
        for x, y, way in frontier:
            ahead = x + HEADINGS[way][0], y + HEADINGS[way][1]
            if ahead == ball:
                return n
            inside = all(0 < place < SIDE - 1 for place in ahead)
            following += [(x, y, (way + 1) % 4), (x, y, (way - 1) % 4), *([(*ahead, way)] if inside else ())]
        frontier = [own for own in dict.fromkeys(following) if own not in seen]
        seen |= set(frontier)
    raise AssertionError("every cell of a room can be reached")


@cache
def actions_to_ball(image: str) -> int:
    """Return how many actions the agent of a picture, a data URL, needs until it faces the ball."""
    return actions_away(facts_of(image))


class Distance(RewardSource):
    """Rewards each step by minus a tenth of the actions that are left until the agent faces the ball."""

    evidence: EvidenceLevel = "L0"

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the reward of each picture."""
        shown = [picture(t.next_state.pictures[-1].data) for t in transitions]
        return [-(1 + actions_to_ball(image)) / 10 for image in shown]


class Constant(RewardSource):
    """Rewards every step by -1, so that an episode is best ended by success; it knows nothing."""

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the reward of each step."""
        return [-1.0] * len(transitions)
