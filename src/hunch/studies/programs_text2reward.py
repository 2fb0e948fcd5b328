"""Text2Reward and Song's lineage: dense rewards as programs, for a task that the sparse reward does not
teach.

hunch study text2reward
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hunch import lm
from hunch.envs.design.reward import RewardDesign
from hunch.lm.base import LanguageModel
from hunch.methods.program.agent import ProgramAgent
from hunch.methods.program.song import Song
from hunch.methods.program.text2reward import Text2Reward
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.studies.code_world_models import kept
from hunch.studies.programs_eureka import MAIN, RUNS, WORLD, Row, again, designed, writer
from hunch.studies.study import Part, Scale, Study

PROGRAMS = 16
"""Programs, and so trainings, per run."""
ENOUGH = 0.8
"""Success at which a reward counts as good."""
LINES: dict[str, Callable[[LanguageModel], ProgramAgent]] = {
    "Text2Reward": lambda model: Text2Reward(model, give_up=0),
    "Text2Reward, no feedback": lambda model: Text2Reward(model, feedback="blind", give_up=0),
    "Song, one lineage": lambda model: Song(model, give_up=0),
    "best of n": lambda model: Text2Reward(model, feedback="fresh", give_up=0),
}
"""Makes the agent of each arm from a writer."""


def searched(steps: int, line: str, seed: int) -> Row:
    """A run of a line."""
    return designed(LINES[line](lm.load(writer(*MAIN), cache=None)), WORLD, 1, steps, seed)


def by_hand(kind: str, seed: int) -> Row:
    """Return the results of a given reward, trained like the winners."""
    env = RewardDesign(**WORLD, trials="")
    return {"again": again(env, getattr(env.world, kind), first=10_000 * (1 + seed))}


def table(seeds: int, steps: int, folder: Path) -> str:
    """Return the results of each arm's winner, and of the sparse and the hand-written reward."""
    bare = kept(
        folder / "bare.jsonl",
        [(kind, seed) for kind in ("sparse", "dense") for seed in range(seeds)],
        by_hand,
    )
    keys = [(line, seed) for seed in range(seeds) for line in LINES]
    found = kept(folder.parent / RUNS, keys, partial(searched, steps))
    lines = [
        f"| arm | fitness when chosen | trained again | at least {ENOUGH:g} | ahead of best of n by |",
        "|---|---|---|---|---|",
    ]
    for name, kind in (("sparse reward", "sparse"), ("hand-written reward", "dense")):
        rows = [row for row in bare if row["key"][0] == kind]
        lines.append(f"| {name} | | {_cells(rows)} | |")
    single = _rows(found, "best of n")
    for line in LINES:
        rows = _rows(found, line)
        gaps = [one["again"] - other["again"] for one, other in zip(rows, single, strict=True)]
        chosen = over_seeds([row["fitness"] for row in rows]).short()
        gap = "" if line == "best of n" else over_pairs(gaps).short()
        lines.append(f"| {line} | {chosen} | {_cells(rows)} | {gap} |")
    return "\n".join(lines)


def _rows(found: list[Row], line: str) -> list[Row]:
    return sorted((row for row in found if row["key"][0] == line), key=lambda row: int(row["key"][1]))


def _cells(rows: list[dict[str, Any]]) -> str:
    worth = [row["again"] for row in rows]
    return f"{over_seeds(worth).short()} | {sum(value >= ENOUGH for value in worth)} of {len(worth)}"


def _parts(scale: Scale, data: Path) -> list[Part]:
    steps = max(4, round(PROGRAMS * scale.share))
    return [Part("Dense rewards by program", (), beside=partial(table, scale.seeds, steps))]


STUDIES = {
    "text2reward": Study(
        "text2reward",
        "Does a reward written as a program teach a task that its sparse reward does not teach?",
        "Of 17 manipulation tasks, 13 were learnt with generated rewards at least as well as with expert "
        "rewards (Xie et al., ICLR 2024). Nine tasks reached a success of 93 to 100 % after "
        "self-refinement (Song et al., 2023).",
        "The writer is a script (L0) that acts on feedback as often as its dials say, so the study says "
        "nothing about language models. Feedback consists of the design problem's numbers; in Text2Reward "
        "it is from a person.",
        _parts,
        seeds=10,
    )
}
