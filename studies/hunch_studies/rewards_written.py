"""Rewards written by a small real model: Eureka, Text2Reward and Song, with a model that writes.

hunch study rewards-written --lm qwen-coder-1.5b
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.methods import find
from hunch.methods.program.agent import ProgramConfig
from hunch.methods.program.eureka import EurekaConfig
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.writer.programs import Feedback
from hunch.runs.compare import Arm
from hunch_contrib.program.song import SongConfig
from hunch_contrib.program.text2reward import Text2RewardConfig
from hunch_studies.programs_eureka import EVEN, PARTS
from hunch_studies.programs_rewards import ENCODERS, GRADED, Row, arm, designed
from hunch_studies.study import Part, Scale, Study

MODEL: Final = "qwen-coder-1.5b"
"""The writer, unless others are named."""
WORLDS: Final[Mapping[str, dict[str, Any]]] = {"Docking": GRADED, "Crane": PARTS}
"""The worlds, by the title of their part: those in which the sparse reward teaches nothing."""
PROGRAMS: Final = 16
"""Programs of a run, as many as Text2Reward and Song have in their own study."""
BATCH: Final = 4
"""Programs in a batch of Eureka (the released configuration has 3)."""
BEST_OF_N: Final = "best of n"
BY_RULE: Final = ("weighted words", "bag of words", "even draws")
"""The controls: rewards from a grammar, whose quantities words or nothing choose. The last knows nothing."""


def arms(world: Row, model: str, programs: int) -> tuple[Arm, ...]:
    """Return the three methods with the model, best of n with it, and best of n of the controls.

    Args:
        world: The options of the environment.
        model: The model that writes.
        programs: Programs of a run.
    """
    # The request and its settings are those of the study "writers".
    asked: dict[str, Any] = {"request": "plain", "temperature": 0.9, "max_tokens": 500}
    # An answer without a program, and a copy, count as programs: they cost as much.
    asked |= {"retries": 0, "give_up": 0}

    def by_model(label: str, method: str, options: ProgramConfig, envs: int) -> Arm:
        return arm(label, find(method), world, model, programs, options, envs)

    def eureka(label: str, feedback: Feedback) -> Arm:
        options = EurekaConfig(population=BATCH, feedback=feedback, **asked)
        return by_model(label, "eureka", options, BATCH)

    def by_rule(name: str) -> Arm:
        spec, temperature = ENCODERS[name]
        method = EVEN if temperature == math.inf else find("eureka")
        options = EurekaConfig(population=BATCH, feedback="fresh", give_up=0)
        return arm(f"{BEST_OF_N}, {name}", method, world, spec, programs, options, BATCH)

    return (
        eureka(BEST_OF_N, "fresh"),
        eureka("Eureka", "own"),
        eureka("Eureka, shuffled feedback", "shuffled"),
        by_model("Text2Reward", "text2reward", Text2RewardConfig(**asked), 1),
        by_model("Song", "song", SongConfig(**asked), 1),
        *map(by_rule, BY_RULE),
    )


def table(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the winners of each arm, trained again, and their leads over two of the arms, in Markdown."""
    return page(designed(listed, seeds, folder))


def page(found: Mapping[str, Sequence[Row]]) -> str:
    """Return the table of some arms: those with the model first, best of n the first of all."""
    even = f"{BEST_OF_N}, {BY_RULE[-1]}"
    words = f"{BEST_OF_N}, {BY_RULE[0]}"
    lines = [
        "| arm | fitness when chosen | trained again | success then | failed | ahead of best of n by | "
        "ahead of words by | ahead of even draws by |",
        "|---" * 8 + "|",
    ]
    for label, rows in found.items():
        failed = sum(row["failed"] for row in rows) / sum(len(row["found"]) for row in rows)
        cells = [over_seeds([row[name] for row in rows]).short() for name in ("fitness", "again", "success")]
        leads = ["" if label == other else _ahead(rows, found[other]) for other in (BEST_OF_N, words, even)]
        lines.append(f"| {label} | {' | '.join(cells)} | {failed:.0%} | {' | '.join(leads)} |")
    drafts = [
        f"- {label}: {np.mean([value for row in rows for value in row['found']]):.2f}, "
        f"{np.mean([value >= 0.5 for row in rows for value in row['found']]):.2f} of them at least 0.5"
        for label, rows in found.items()
        if label.startswith(BEST_OF_N)
    ]
    return "\n".join([*lines, "", "Mean fitness of first programs, a failed one counts as 0:", "", *drafts])


def _ahead(rows: Sequence[Row], others: Sequence[Row]) -> str:
    pairs = zip(rows, others, strict=True)
    return over_pairs([row["again"] - other["again"] for row, other in pairs]).short()


def _parts(scale: Scale, data: Path) -> list[Part]:
    programs = max(BATCH, round(PROGRAMS * scale.share))
    parts = []
    for model in scale.lms or (MODEL,):
        for name, world in WORLDS.items():
            listed = arms(world, model, programs)
            title = name if len(scale.lms) < 2 else f"{name}, {model}"
            parts.append(Part(title, listed, beside=partial(table, listed, scale.seeds), apart=True))
    return parts


STUDIES = {
    "rewards-written": Study(
        "rewards-written",
        "Does a small real model write rewards from which a policy learns, and does feedback improve them?",
        "With GPT-4, Eureka beats expert rewards on 83 % of 29 tasks (Ma et al., ICLR 2024). Of 17 "
        "manipulation tasks, 13 were learnt with generated rewards at least as well as with expert rewards "
        "(Xie et al., ICLR 2024).",
        "The request is the plain one, for a reward of one step without components. The worlds are ours, and "
        "a trial is one training by the cross-entropy method. Feedback consists of numbers, in Text2Reward "
        "too, in place of a person's words. Eureka has four batches of four programs.",
        _parts,
        lm_for="eureka",
        seeds=5,
    )
}
