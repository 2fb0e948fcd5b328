"""Rewards written by a small real model: Eureka and Song with a model that writes.

hunch study rewards-written --lm qwen-coder-1.5b
python -m hunch_studies.rewards_written docs/assets/studies/rewards-written.jsonl   # the recorded rows
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
from hunch.runs.files import read_lines
from hunch_contrib.program.song import SongConfig
from hunch_studies.planners import table as table_of
from hunch_studies.programs_eureka import EVEN, PARTS
from hunch_studies.programs_rewards import ENCODERS, GRADED, Row, arm, designed
from hunch_studies.programs_text2reward import by_hand
from hunch_studies.recorded_rows import print_table
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
SHUFFLED: Final = "Eureka, shuffled feedback"
OTHERS: Final[Mapping[str, str]] = {
    BEST_OF_N: BEST_OF_N,
    BLANK: "the blank prompt",
    f"{BEST_OF_N}, weighted words": "words",
    f"{BEST_OF_N}, even draws": "even draws",
}
"""The arms over which leads are shown, and what they are called in the head of a table."""


def arms(world: Row, model: str, programs: int) -> tuple[Arm, ...]:
    """Return best of n with the model and with the blank prompt, the methods, and best of n of the controls.

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


def table(world: Row, listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the tables of :func:`page`, with what two given rewards are worth, in Markdown."""
    keys = [(kind, seed) for kind in GIVEN for seed in range(seeds)]
    given = kept(folder / "given.jsonl", keys, partial(by_hand, world))
    worth = [
        f"{name} {over_seeds([row['again'] for row in given if row['key'][0] == kind]).short()}"
        for kind, name in GIVEN.items()
    ]
    return f"Rewards that are given: {', '.join(worth)}.\n\n{page(designed(listed, seeds, folder))}"


def page(by_arm: Mapping[str, Sequence[Row]]) -> str:
    """Return tables of winners, of first programs and of later ones, in Markdown.

    Args:
        by_arm: The rows of :func:`~hunch_studies.programs_rewards.designed`, one a seed, by arm.
    """
    parts = [
        _winners(by_arm),
        "First programs, which see no other program: mean fitness, where one that failed counts as 0, the "
        "share with at least 0.5, and leads in the mean, paired by seed.",
        _first_programs(by_arm),
        f"Programs after the first {BATCH}, when a search has a parent to improve, without copies: mean "
        "fitness, where one that failed counts as 0, and leads paired by seed.",
        _later_programs(by_arm),
    ]
    return "\n\n".join(parts)


def _winners(by_arm: Mapping[str, Sequence[Row]]) -> str:
    """Return the winner of each arm, trained again, with leads over the controls that there are."""
    others = [label for label in OTHERS if label in by_arm]
    columns = ["arm", "fitness when chosen", "trained again", "success then", "failed", "copies"]
    columns += [f"ahead of {OTHERS[other]} by" for other in others]
    lines = []
    again = {label: [float(row["again"]) for row in rows] for label, rows in by_arm.items()}
    for label, rows in by_arm.items():
        programs = sum(len(row["found"]) for row in rows)
        failed = sum(row["failed"] for row in rows) / programs
        copies = sum(sum(row["copied"]) for row in rows) / programs
        cells = [over_seeds([row[name] for row in rows]).short() for name in ("fitness", "again", "success")]
        leads = [_lead(again, label, other) for other in others]
        lines.append([label, *cells, f"{failed:.0%}", f"{copies:.0%}", *leads])
    return table_of(" | ".join(columns), lines)


def _first_programs(by_arm: Mapping[str, Sequence[Row]]) -> str:
    """Return the table of programs that were written without parents."""
    fresh = {label: rows for label, rows in by_arm.items() if label.startswith(BEST_OF_N)}
    means = {label: [float(np.mean(row["found"])) for row in rows] for label, rows in fresh.items()}
    others = [label for label in OTHERS if label in fresh and label != BEST_OF_N]
    columns = ["written by", "programs", "fitness", "at least 0.5"]
    columns += [f"ahead of {OTHERS[other]} by" for other in others]
    lines = []
    for label, rows in fresh.items():
        good = [float(np.mean([fitness >= 0.5 for fitness in row["found"]])) for row in rows]
        number = sum(len(row["found"]) for row in rows)
        leads = [_lead(means, label, other) for other in others]
        name = label.removeprefix(f"{BEST_OF_N}, ")
        lines.append([name, str(number), over_seeds(means[label]).short(), over_seeds(good).short(), *leads])
    return table_of(" | ".join(columns), lines)


def _later_programs(by_arm: Mapping[str, Sequence[Row]]) -> str:
    """Return the table of programs that each search wrote after its first batch; copies are left out."""
    means: dict[str, list[float]] = {}
    for label in (BEST_OF_N, "Eureka", SHUFFLED, "Song"):
        later = [_later(row) for row in by_arm.get(label, ())]
        if later and all(later):
            means[label] = [float(np.mean(fitness)) for fitness in later]
    others = [label for label in (BEST_OF_N, SHUFFLED) if label in means]
    columns = ["programs of", "fitness", *(f"ahead of {other} by" for other in others)]
    lines = []
    for label, values in means.items():
        lines.append([label, over_seeds(values).short(), *(_lead(means, label, other) for other in others)])
    return table_of(" | ".join(columns), lines)


def _later(row: Row) -> list[float]:
    """Return the fitness of the programs of a run after the first batch that are no copies."""
    pairs = zip(row["found"][BATCH:], row["copied"][BATCH:], strict=True)
    return [fitness for fitness, copied in pairs if not copied]


def _lead(by_arm: Mapping[str, Sequence[float]], label: str, other: str) -> str:
    """Return the lead of an arm over another on the seeds that both have; empty over itself."""
    if label == other:
        return ""
    pairs = zip(by_arm[label], by_arm[other], strict=False)
    return over_pairs([value - base for value, base in pairs]).short()


def recorded(file: Path) -> str:
    """Return the tables of recorded rows, in Markdown; each has its ``world`` and what :func:`page` reads."""
    by_world: dict[str, dict[str, list[Row]]] = {}
    for row in read_lines(file):
        by_world.setdefault(row["world"], {}).setdefault(row["key"][0], []).append(row)
    return "\n\n".join(f"### {world}\n\n{page(by_arm)}" for world, by_arm in by_world.items())


def _parts(scale: Scale, data: Path) -> list[Part]:
    programs = max(BATCH, round(PROGRAMS * scale.share))
    parts = []
    for model in scale.lms or (MODEL,):
        for name, world in WORLDS.items():
            listed = arms(world, model, programs)
            title = name if len(scale.lms) < 2 else f"{name}, {model}"
            parts.append(Part(title, listed, measure=partial(table, world), apart=True))
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

if __name__ == "__main__":
    print_table(recorded, "Tables of rewards that a real model wrote.")
