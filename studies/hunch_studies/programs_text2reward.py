"""Text2Reward and Song's lineage: dense rewards as programs, for a task that the sparse reward does not
teach. A sentence encoder and a script write them.

hunch study text2reward
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hunch.methods import Method, find
from hunch.methods.program.agent import ProgramConfig
from hunch.rl.statistics import over_episodes, over_pairs, over_seeds
from hunch.roles.writer.programs import Writer
from hunch.runs.compare import Arm
from hunch_contrib.program.song import SongConfig
from hunch_contrib.program.text2reward import Text2Reward, Text2RewardConfig
from hunch_studies.programs_eureka import PARTS
from hunch_studies.programs_funsearch import tried
from hunch_studies.programs_rewards import (
    ENCODERS,
    MAIN,
    WORLD,
    Row,
    again,
    arm,
    designed,
    encoder,
    writer,
)
from hunch_studies.similarity_writer import SimilarityWriter
from hunch_studies.study import Part, Scale, Study, kept
from hunch_studies.worlds.rewards.env import RewardDesign

__all__ = ["EVEN", "STUDIES", "Even"]

PROGRAMS = 16
"""Programs, and so trainings, per run."""
ENOUGH = 0.8
"""Success at which a reward counts as good."""
REACHER: dict[str, Any] = {"world": "reacher"}
Lines = Mapping[str, tuple[Method, str, ProgramConfig]]
"""Method, model and settings of each arm."""


DRAFTS = 25
"""Drafts per seed."""
CURVE = (1, 2, 4, 8, 16)
"""Numbers of programs of which the best is shown."""


class Even(Text2Reward):
    """Text2Reward whose writer draws all quantities alike."""

    def _asking(self, lm: Any) -> Writer:
        return SimilarityWriter(lm, math.inf)


EVEN = replace(find("text2reward"), name=f"{__name__}:EVEN", agent_class=Even)
REFINED, SONG = Text2RewardConfig(give_up=0), SongConfig(give_up=0)
RULE = writer(*MAIN)
"""The scripted writer at the rates of Eureka's main comparison."""
BY_ENCODER: Lines = {
    **{
        f"Text2Reward, {name}": (EVEN if temperature == math.inf else find("text2reward"), spec, REFINED)
        for name, (spec, temperature) in ENCODERS.items()
    },
    "Song, MiniLM": (find("song"), "minilm", SONG),
    "no feedback, MiniLM": (find("text2reward"), "minilm", replace(REFINED, feedback="blind")),
    "best of n, MiniLM": (find("text2reward"), "minilm", replace(REFINED, feedback="fresh")),
}
"""Refinement by feedback with each encoder, and with MiniLM in other searches. First the method."""
SCRIPTED: Lines = {
    "Text2Reward": (find("text2reward"), RULE, REFINED),
    "Text2Reward, no feedback": (find("text2reward"), RULE, replace(REFINED, feedback="blind")),
    "Song, one lineage": (find("song"), RULE, SONG),
    "best of n": (find("text2reward"), RULE, replace(REFINED, feedback="fresh")),
}
"""The scripted writer. First the method."""
LINEAGE: Lines = {
    "Song": (find("song"), RULE, SONG),
    "shuffled feedback": (find("song"), RULE, replace(SONG, feedback="shuffled")),
    "no feedback": (find("song"), RULE, replace(SONG, feedback="blind")),
    "best of n": (find("song"), RULE, replace(SONG, feedback="fresh")),
    "Song, a writer without faults": (find("song"), writer(1.0, 0.0), SONG),
}
"""Song's search and its controls, and a ceiling. First the method."""


def arms(lines: Lines, world: dict[str, Any], steps: int) -> tuple[Arm, ...]:
    """Return the runs of some lines."""
    return tuple(arm(label, method, world, lm, steps, c) for label, (method, lm, c) in lines.items())


def drafted(world: dict[str, Any], name: str, number: int) -> Row:
    """Return the success of a policy that is trained on a first draft."""
    env = RewardDesign(**world, trials="")
    program = encoder(name).write(env.problem, (), "", 1, number)[0]
    return {"success": tried(env, program, seed=number).fitness or 0.0, "program": program}


def drafts(world: dict[str, Any], n: int, folder: Path) -> str:
    """Return the success of first drafts, by encoder."""
    keys = [(name, number) for number in range(n) for name in ENCODERS]
    found = kept(folder / "runs.jsonl", keys, partial(drafted, world))
    by_name = {
        name: [row["success"] for row in sorted(found, key=lambda r: r["key"][1]) if row["key"][0] == name]
        for name in ENCODERS
    }
    rows = ["| drafts by | success | at least 0.5 | MiniLM is ahead by |", "|---|---|---|---|"]
    for name, values in by_name.items():
        gap = over_pairs([a - b for a, b in zip(by_name["MiniLM"], values, strict=True)]).short()
        share = over_episodes([value >= 0.5 for value in values])
        rows.append(f"| {name} | {np.mean(values):.2f} | {share} | {'' if name == 'MiniLM' else gap} |")
    return f"Means over {n} drafts each.\n\n" + "\n".join(rows)


def by_hand(world: dict[str, Any], kind: str, seed: int) -> Row:
    """Return the results of a given reward, trained like the winners."""
    env = RewardDesign(**world, trials="")
    return {"again": again(env, getattr(env.world, kind), first=10_000 * (1 + seed))}


def table(listed: Sequence[Arm], world: dict[str, Any], seeds: int, folder: Path) -> str:
    """Return the results of each arm's winner, and of the sparse and the hand-written reward."""
    keys = [(kind, seed) for kind in ("sparse", "dense") for seed in range(seeds)]
    bare = kept(folder.parent / f"bare-{world['world']}.jsonl", keys, partial(by_hand, world))
    found = designed(listed, seeds, folder)
    first = next(iter(found))
    rows = [
        f"| arm | fitness when chosen | trained again | at least {ENOUGH:g} | {first} is ahead by |",
        "|---|---|---|---|---|",
    ]
    for name, kind in (("sparse reward", "sparse"), ("hand-written reward", "dense")):
        rows.append(f"| {name} | | {_cells(_rows(bare, kind))} | |")
    for line, own in found.items():
        gaps = [one["again"] - other["again"] for one, other in zip(found[first], own, strict=True)]
        chosen = over_seeds([row["fitness"] for row in own]).short()
        gap = "" if line == first else over_pairs(gaps).short()
        rows.append(f"| {line} | {chosen} | {_cells(own)} | {gap} |")
    return "\n".join([*rows, "", *_curves(found)])


def _curves(by_line: Mapping[str, list[Row]]) -> list[str]:
    """Return the best fitness after some numbers of programs, in Markdown."""
    head = " | ".join(f"{n} program{'s' * (n > 1)}" for n in CURVE)
    lines = [f"| best fitness after | {head} |", "|---" * (1 + len(CURVE)) + "|"]
    for line, rows in by_line.items():
        cells = [f"{np.mean([max(row['found'][:n]) for row in rows]):.2f}" for n in CURVE]
        lines.append(f"| {line} | {' | '.join(cells)} |")
    return lines


def _rows(found: list[Row], line: str) -> list[Row]:
    return sorted((row for row in found if row["key"][0] == line), key=lambda row: int(row["key"][1]))


def _cells(rows: list[dict[str, Any]]) -> str:
    worth = [row["again"] for row in rows]
    return f"{over_seeds(worth).short()} | {sum(value >= ENOUGH for value in worth)} of {len(worth)}"


def _parts(scale: Scale, data: Path) -> list[Part]:
    steps = max(4, round(PROGRAMS * scale.share))
    n = DRAFTS * scale.seeds
    encoded, scripted = (arms(lines, WORLD, steps) for lines in (BY_ENCODER, SCRIPTED))
    lineage = arms(LINEAGE, PARTS, steps)
    return [
        Part("First drafts in docking", (), beside=partial(drafts, WORLD, n)),
        Part("First drafts in the reacher", (), beside=partial(drafts, REACHER, n // 2)),
        Part("Refined in docking", encoded, beside=partial(table, encoded, WORLD, scale.seeds)),
        Part("Scripted writer", scripted, beside=partial(table, scripted, WORLD, scale.seeds)),
        Part("A task of three parts", lineage, beside=partial(table, lineage, PARTS, scale.seeds)),
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
        "is from a person. There are 25 drafts per seed, and half as many in the "
        "reacher.",
        _parts,
        seeds=20,
    )
}
