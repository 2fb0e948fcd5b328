"""Text2Reward and Song's lineage: dense rewards as programs, for a task that the sparse reward does not
teach. A sentence encoder and a script write them.

hunch study text2reward
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hunch import lm
from hunch.envs.design.reward import RewardDesign
from hunch.methods.program.agent import ProgramAgent
from hunch.methods.program.song import Song
from hunch.methods.program.text2reward import Text2Reward
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.program_similarity import TEMPERATURE, SimilarityWriter
from hunch.studies.code_world_models import kept
from hunch.studies.programs_eureka import MAIN, WORLD, Row, again, designed, writer
from hunch.studies.study import Part, Scale, Study

PROGRAMS = 16
"""Programs, and so trainings, per run."""
ENOUGH = 0.8
"""Success at which a reward counts as good."""
REACHER: dict[str, Any] = {"world": "reacher"}
Lines = Mapping[str, Callable[[], ProgramAgent]]


def encoder(spec: str, temperature: float = TEMPERATURE) -> SimilarityWriter:
    """Return a writer whose quantities are chosen by an encoder."""
    return SimilarityWriter(lm.load(spec, cache=None), temperature)


def scripted() -> Any:
    """Return the scripted writer at the rates of Eureka's main comparison."""
    return lm.load(writer(*MAIN), cache=None)


ENCODERS: Lines = {
    "Text2Reward, MiniLM": lambda: Text2Reward(encoder("minilm"), give_up=0),
    "Text2Reward, bag of words": lambda: Text2Reward(encoder("bag-of-words"), give_up=0),
    "Text2Reward, weighted words": lambda: Text2Reward(encoder("words"), give_up=0),
    "Text2Reward, even draws": lambda: Text2Reward(encoder("words", math.inf), give_up=0),
}
"""Writers that choose quantities by similarity to the task, and the uninformed one. First the method."""
SEARCHES: Lines = {
    "Song, MiniLM": lambda: Song(encoder("minilm"), give_up=0),
    "no feedback, MiniLM": lambda: Text2Reward(encoder("minilm"), feedback="blind", give_up=0),
    "best of n, MiniLM": lambda: Text2Reward(encoder("minilm"), feedback="fresh", give_up=0),
}
"""The same writer in other searches."""
SCRIPTED: Lines = {
    "Text2Reward": lambda: Text2Reward(scripted(), give_up=0),
    "Text2Reward, no feedback": lambda: Text2Reward(scripted(), feedback="blind", give_up=0),
    "Song, one lineage": lambda: Song(scripted(), give_up=0),
    "best of n": lambda: Text2Reward(scripted(), feedback="fresh", give_up=0),
}
"""The scripted writer. First the method."""


def searched(lines: Lines, world: dict[str, Any], steps: int, line: str, seed: int) -> Row:
    """A run of a line."""
    return designed(lines[line](), world, 1, steps, seed)


def by_hand(world: dict[str, Any], kind: str, seed: int) -> Row:
    """Return the results of a given reward, trained like the winners."""
    env = RewardDesign(**world, trials="")
    return {"again": again(env, getattr(env.world, kind), first=10_000 * (1 + seed))}


def table(lines: Lines, world: dict[str, Any], seeds: int, steps: int, folder: Path) -> str:
    """Return the results of each arm's winner, and of the sparse and the hand-written reward."""
    keys = [(kind, seed) for kind in ("sparse", "dense") for seed in range(seeds)]
    bare = kept(folder.parent / f"bare-{world['world']}.jsonl", keys, partial(by_hand, world))
    keys = [(line, seed) for seed in range(seeds) for line in lines]
    found = kept(folder / "runs.jsonl", keys, partial(searched, lines, world, steps))
    first = next(iter(lines))
    rows = [
        f"| arm | fitness when chosen | trained again | at least {ENOUGH:g} | {first} is ahead by |",
        "|---|---|---|---|---|",
    ]
    for name, kind in (("sparse reward", "sparse"), ("hand-written reward", "dense")):
        rows.append(f"| {name} | | {_cells(_rows(bare, kind))} | |")
    for line in lines:
        own = _rows(found, line)
        gaps = [one["again"] - other["again"] for one, other in zip(_rows(found, first), own, strict=True)]
        chosen = over_seeds([row["fitness"] for row in own]).short()
        gap = "" if line == first else over_pairs(gaps).short()
        rows.append(f"| {line} | {chosen} | {_cells(own)} | {gap} |")
    return "\n".join(rows)


def _rows(found: list[Row], line: str) -> list[Row]:
    return sorted((row for row in found if row["key"][0] == line), key=lambda row: int(row["key"][1]))


def _cells(rows: list[dict[str, Any]]) -> str:
    worth = [row["again"] for row in rows]
    return f"{over_seeds(worth).short()} | {sum(value >= ENOUGH for value in worth)} of {len(worth)}"


def _parts(scale: Scale, data: Path) -> list[Part]:
    steps = max(4, round(PROGRAMS * scale.share))
    tables: dict[str, tuple[Lines, dict[str, Any], int]] = {
        "Docking, by encoder": ({**ENCODERS, **SEARCHES}, WORLD, scale.seeds),
        "Reacher, by encoder": (ENCODERS, REACHER, (scale.seeds + 1) // 2),
        "Docking, scripted writer": (SCRIPTED, WORLD, scale.seeds),
    }
    return [
        Part(title, (), beside=partial(table, lines, world, seeds, steps))
        for title, (lines, world, seeds) in tables.items()
    ]


STUDIES = {
    "text2reward": Study(
        "text2reward",
        "Does a reward written as a program teach a task that its sparse reward does not teach?",
        "Of 17 manipulation tasks, 13 were learnt with generated rewards at least as well as with expert "
        "rewards (Xie et al., ICLR 2024). Nine tasks reached a success of 93 to 100 % after "
        "self-refinement (Song et al., 2023).",
        "No model that generates: rewards are drawn from a grammar, and MiniLM (L3) or a script (L0) chooses "
        "what they are computed from. Feedback consists of the design problem's numbers; in Text2Reward it "
        "is from a person. The table of the reacher has half of the seeds.",
        _parts,
        seeds=20,
    )
}
