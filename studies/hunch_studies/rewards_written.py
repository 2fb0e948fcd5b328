"""Rewards written by a small real model: Eureka, Text2Reward and Song, with a model that writes.

hunch study rewards-written --lm qwen-coder-1.5b
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
from hunch_studies.programs_eureka import EVEN, PARTS
from hunch_studies.programs_rewards import ENCODERS, GRADED, Row, arm, designed
from hunch_studies.programs_text2reward import by_hand
from hunch_studies.study import Part, Scale, Study, kept

MODEL: Final = "qwen-coder-1.5b"
"""The writer, unless others are named."""
WORLDS: Final[Mapping[str, dict[str, Any]]] = {"Docking": GRADED, "Crane": PARTS}
"""The worlds, by the title of their part: those in which the sparse reward teaches nothing."""
GIVEN: Final[Mapping[str, str]] = {"sparse": "for success alone", "dense": "written by hand"}
"""Rewards of a world itself, floor and ceiling, and what they are."""
PROGRAMS: Final = 16
"""Programs of a run, as many as Text2Reward and Song have in their own study."""
BATCH: Final = 4
"""Programs in a batch of Eureka (the released configuration has 3)."""
BEST_OF_N: Final = "best of n"
BY_RULE: Final = ("weighted words", "bag of words", "even draws")
"""The controls: rewards from a grammar, whose quantities words or nothing choose. The last knows nothing."""


BLANK: Final = f"{BEST_OF_N}, blank prompt"
OTHERS: Final[Mapping[str, str]] = {
    BEST_OF_N: BEST_OF_N,
    BLANK: "the blank prompt",
    f"{BEST_OF_N}, weighted words": "words",
    f"{BEST_OF_N}, even draws": "even draws",
}
"""The arms over which leads are shown, and what they are called in the head of a table."""


def arms(world: Row, model: str, programs: int) -> tuple[Arm, ...]:
    """Return the methods with the model, best of n with it, and best of n of the controls.

    Args:
        world: The options of the environment.
        model: The model that writes.
        programs: Programs of a run.
    """
    # The request and its settings are those of the study "writers".
    asked: dict[str, Any] = {"request": "plain", "temperature": 0.9, "max_tokens": 500}
    # An answer without a program, and a copy, count as programs: they cost as much.
    asked |= {"retries": 0, "give_up": 0}

    def by_model(label: str, method: str, options: ProgramConfig, envs: int, **env_options: Any) -> Arm:
        return arm(label, find(method), {**world, **env_options}, model, programs, options, envs)

    def eureka(label: str, feedback: Feedback, **env_options: Any) -> Arm:
        options = EurekaConfig(population=BATCH, feedback=feedback, **asked)
        return by_model(label, "eureka", options, BATCH, **env_options)

    def by_rule(name: str) -> Arm:
        spec, temperature = ENCODERS[name]
        method = EVEN if temperature == math.inf else find("eureka")
        options = EurekaConfig(population=BATCH, feedback="fresh", retries=0, give_up=0)
        return arm(f"{BEST_OF_N}, {name}", method, world, spec, programs, options, BATCH)

    return (
        eureka(BEST_OF_N, "fresh"),
        eureka(BLANK, "fresh", blank=True),
        eureka("Eureka", "own"),
        eureka(SHUFFLED, "shuffled"),
        # A plain request shows one program, so Text2Reward asks as Song does, until Song has a good reward.
        by_model("Song", "song", SongConfig(**asked), 1),
        *map(by_rule, BY_RULE),
    )


def table(listed: Sequence[Arm], world: Row, seeds: int, folder: Path) -> str:
    """Return the tables of :func:`page`, with what two given rewards are worth, in Markdown."""
    keys = [(kind, seed) for kind in GIVEN for seed in range(seeds)]
    given = kept(folder / "given.jsonl", keys, partial(by_hand, world))
    worth = [
        f"{name} {over_seeds([row['again'] for row in given if row['key'][0] == kind]).short()}"
        for kind, name in GIVEN.items()
    ]
    return f"Rewards that are given: {', '.join(worth)}.\n\n{page(designed(listed, seeds, folder))}"


def page(found: Mapping[str, Sequence[Row]]) -> str:
    """Return a table of the winners of each arm, and one of first programs, in Markdown."""
    leads = [f"ahead of {OTHERS.get(label, label)} by" for label in _others(found)]
    columns = ["arm", "fitness when chosen", "trained again", "success then", "failed", "copies", *leads]
    lines = _head(columns)
    for label, rows in found.items():
        programs = sum(len(row["found"]) for row in rows)
        cells = [over_seeds([row[name] for row in rows]).short() for name in ("fitness", "again", "success")]
        cells += [f"{sum(row[name] for row in rows) / programs:.0%}" for name in ("failed", "copies")]
        cells += _leads(label, found, lambda row: float(row["again"]))
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", FIRST, "", *_first_programs(found), "", LATER, "", *_later_programs(found)])


FIRST: Final = (
    "First programs, which see no other program: mean fitness, where one that failed counts as 0, the share "
    "with at least 0.5, and leads in the mean, paired by seed."
)


def _first_programs(found: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return the table of programs that were written without parents."""
    fresh = {label: rows for label, rows in found.items() if label.startswith(BEST_OF_N)}
    leads = [f"ahead of {OTHERS.get(label, label)} by" for label in _others(found)[1:]]
    lines = _head(["written by", "programs", "fitness", "at least 0.5", *leads])
    for label, rows in fresh.items():
        values = [value for row in rows for value in row["found"]]
        shares = over_seeds([float(np.mean([value >= 0.5 for value in row["found"]])) for row in rows])
        means = over_seeds([float(np.mean(row["found"])) for row in rows])
        cells = [str(len(values)), means.short(), shares.short()]
        cells += _leads(label, fresh, lambda row: float(np.mean(row["found"])))[1:]
        lines.append(f"| {OTHERS.get(label, label)} | {' | '.join(cells)} |")
    return lines


LATER: Final = (
    f"Programs after the first {BATCH}, when a search has a parent to improve: mean fitness, where one that "
    "failed counts as 0, and leads paired by seed."
)
SHUFFLED: Final = "Eureka, shuffled feedback"


def _later_programs(found: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return the table of programs that searches with the model wrote after their first batch."""
    searches = [
        label
        for label in (BEST_OF_N, "Eureka", SHUFFLED, "Song")
        if label in found and all(len(row["found"]) > BATCH for row in found[label])
    ]
    means = {label: [float(np.mean(row["found"][BATCH:])) for row in found[label]] for label in searches}
    lines = _head(["programs of", "fitness", "ahead of best of n by", "ahead of shuffled feedback by"])
    for label in searches:
        cells = [over_seeds(means[label]).short()]
        for other in (BEST_OF_N, SHUFFLED):
            pairs = zip(means[label], means.get(other, ()), strict=False)
            lead = over_pairs([one - against for one, against in pairs]) if other in means else None
            cells.append("" if label == other or lead is None else lead.short())
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def _others(found: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return the arms over which leads are shown, of those that there are."""
    return [label for label in OTHERS if label in found]


def _leads(label: str, found: Mapping[str, Sequence[Row]], worth: Callable[[Row], float]) -> list[str]:
    """Return the lead of an arm over each of the others, paired by seed; empty over itself."""
    cells = []
    for other in _others(found):
        pairs = zip(found[label], found[other], strict=True)
        lead = over_pairs([worth(row) - worth(against) for row, against in pairs])
        cells.append("" if other == label else lead.short())
    return cells


def _head(columns: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def _parts(scale: Scale, data: Path) -> list[Part]:
    programs = max(BATCH, round(PROGRAMS * scale.share))
    parts = []
    for model in scale.lms or (MODEL,):
        for name, world in WORLDS.items():
            listed = arms(world, model, programs)
            title = name if len(scale.lms) < 2 else f"{name}, {model}"
            parts.append(Part(title, listed, beside=partial(table, listed, world, scale.seeds), apart=True))
    return parts


STUDIES = {
    "rewards-written": Study(
        "rewards-written",
        "Does a small real model write rewards from which a policy learns, and does feedback improve them?",
        "With GPT-4, Eureka beats expert rewards on 83 % of 29 tasks (Ma et al., ICLR 2024). Of 17 "
        "manipulation tasks, 13 were learnt with generated rewards at least as well as with expert rewards "
        "(Xie et al., ICLR 2024).",
        "The request is the plain one, for a reward of one step without components. The worlds are ours, and "
        "a trial is one training by the cross-entropy method. Feedback consists of numbers. Eureka has four "
        "batches of four programs. With the plain request Text2Reward asks what Song asks, so it has no arm.",
        _parts,
        lm_for="eureka",
        seeds=5,
    )
}
