"""Study of a model that reads pictures: facts from pictures, and a text method on what is read.

    hunch study vision-facts

The model is our own, ``pocket?corpus=clip``. The controls are the same training with the captions of other
pictures, an untrained network, and a programmer's reader: the nearest tile of the plain skin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.lm import Cached, Message, load, picture
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.laboratory import clip
from hunch_studies.study import Part, Scale, Study
from hunch_studies.worlds.babyai.facts import FACING, SCHEMA, at_dusk

EYES: Final = "pocket?corpus=clip"
ENV: Final = "hunch/BabyAI-GoToRedBallNoDists-v0"
PLAYED: Final = 1_500
"""Steps of a run."""
SHOWN: Final = 400
"""Pictures of unseen layouts on which the facts are measured."""
SKINS: Final[Mapping[str, Callable[[clip.Pixels], clip.Pixels]]] = {"plain": lambda p: p, "dusk": at_dusk}
Reads = Callable[[clip.Pixels], dict[str, str]]


def by_likeness(model: Cached) -> Reads:
    """Return a reader that takes, of each field, the sentence nearest to the picture."""
    lines = {name: model.embed(list(values.values())) for name, values in SCHEMA.fields.items()}

    def reads(pixels: clip.Pixels) -> dict[str, str]:
        seen = model.embed([(Message("user", "", (picture(pixels),)),)])[0]
        return {name: list(SCHEMA.fields[name])[int(np.argmax(own @ seen))] for name, own in lines.items()}

    return reads


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


def facts_table(folder: Path, models: Mapping[str, Callable[[], Reads]], shown: int) -> str:
    """Return how often each fact is read, by reader and skin, in Markdown."""
    rooms = [room for room in clip.scenes("held out", 2 * shown, unseen=True, whole=True) if room.facts][
        :shown
    ]
    lines = [f"| reader | skin | {' | '.join(SCHEMA.fields)} | all five |", "|---|---|" + "---|" * 6]
    for name, make in models.items():
        reads = make()
        for skin, changed in SKINS.items():
            found = [reads(changed(room.picture)) for room in rooms]
            right = np.array(
                [[r[f] == room.facts[f] for f in SCHEMA.fields] for r, room in zip(found, rooms, strict=True)]
            )
            cells_ = " | ".join(f"{share:.2f}" for share in (*right.mean(0), right.all(1).mean()))
            lines.append(f"| {name} | {skin} | {cells_} |")
    chance = [1 / len(values) for values in SCHEMA.fields.values()]
    lines.append(f"| chance | | {' | '.join(f'{c:.2f}' for c in (*chance, float(np.prod(chance))))} |")
    return "\n".join([*lines, "", f"{len(rooms)} pictures of unseen layouts with one or two things."])


def control(data: Path, name: str, config: clip.ClipConfig) -> Path:
    """Train a control by the recipe of the model, unless it is there; return its folder."""
    folder = data / name / "model"
    if not (folder / "config.json").exists():
        clip.train(config, data / name, lambda line: None)
    return folder


def arms(scale: Scale, data: Path) -> tuple[Arm, ...]:
    """DQN-Prior and DQN on true facts, and on what readers read."""
    steps = scale.steps(PLAYED)

    def arm(label: str, reader: str = "", lm: str = "pocket?corpus=walks", skin: str = "plain") -> Arm:
        options = {"history": 0, "skin": skin} | ({"reader": reader} if reader else {})
        config = DQNPriorConfig(encoder="phrases")
        return Arm(
            label,
            RunConfig(method="dqn-prior", env=ENV, env_options=options, lm=lm, steps=steps, options=config),
        )

    return (
        arm("true facts"),
        arm("facts read by clip", EYES),
        arm("facts read by clip, dusk", EYES, skin="dusk"),
        arm("shuffled captions", f"pocket?folder={data / 'shuffled' / 'model'}"),
        arm("untrained", f"pocket?folder={data / 'untrained' / 'model'}"),
        arm("true facts, uniform prior", lm="uniform"),
        arm("facts read by clip, uniform prior", EYES, lm="uniform"),
    )


def parts(scale: Scale, data: Path) -> Sequence[Part]:
    """The facts, and a text method on them."""
    updates = max(1, round(clip.ClipConfig().updates * scale.share))
    controls = {
        "shuffled": clip.ClipConfig(updates=updates, shuffled=True),
        "untrained": clip.ClipConfig(updates=0),
    }

    def prepare() -> None:
        for name, config in controls.items():
            control(data, name, config)

    def reader(spec: str) -> Reads:
        return by_likeness(load(spec, cache=None))

    models: dict[str, Callable[[], Any]] = {
        "clip": partial(reader, EYES),
        "shuffled captions": partial(reader, f"pocket?folder={data / 'shuffled' / 'model'}"),
        "untrained": partial(reader, f"pocket?folder={data / 'untrained' / 'model'}"),
        "nearest tile of the plain skin": lambda: by_tiles,
    }
    told = partial(facts_table, models=models, shown=scale.episodes(SHOWN))
    return (
        Part("Facts of unseen layouts", (), beside=told, prepare=prepare),
        Part("A text method on what is read", arms(scale, data)),
    )


STUDIES = {
    "vision-facts": Study(
        "vision-facts",
        "Does a small model with eyes read the facts that a policy needs, and does a text method run on "
        "them?",
        "None; the reader is ours. RL-VLM-F and VLM-RM use such models for rewards and read no facts.",
        "The model is our own, of 0.16 million weights, trained on rendered rooms and captions that we "
        "generate ([the eyes](../pocket.md#the-eyes)). Evidence is L1: it says nothing about other models that see.",
        parts,
    )
}
