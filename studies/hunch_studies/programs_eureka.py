"""Eureka's loop against its controls, with a scripted writer that has dials for its error rates.

hunch study eureka
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hunch import lm
from hunch.envs.design.reward_grammar import Part as PartOfReward
from hunch.envs.design.reward_grammar import damaged, evenly, listed, quantities, written
from hunch.methods import find
from hunch.methods.program.eureka import Eureka, EurekaConfig
from hunch.rl.statistics import Estimate, over_pairs, over_seeds
from hunch.roles.writer.programs import Attempt, Feedback, ModelWriter, Writer, best
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.frontier import draw_frontier
from hunch_studies.programs_funsearch import attempts_of, programs_of, tried, winner
from hunch_studies.programs_rewards import (
    AGAIN,
    BATCH,
    ENCODERS,
    GRADED,
    MAIN,
    WORLD,
    Row,
    again,
    arm,
    designed,
    writer,
)
from hunch_studies.similarity_writer import SimilarityWriter
from hunch_studies.study import Part, Scale, Study, kept, place_name, runs_of
from hunch_studies.worlds.rewards import WORLDS
from hunch_studies.worlds.rewards.env import RewardDesign

__all__ = ["EVEN", "STUDIES", "Even"]

CONTROLS: dict[str, Feedback] = {
    "Eureka": "own",
    "shuffled feedback": "shuffled",
    "blind": "blind",
    "best of n": "fresh",
}
"""The arms, and the feedback that their writer is shown."""
BY_ENCODER: dict[str, tuple[str, Feedback]] = {
    "Eureka, MiniLM": ("MiniLM", "own"),
    "Eureka, bag of words": ("bag of words", "own"),
    "Eureka, weighted words": ("weighted words", "own"),
    "Eureka, even draws": ("even draws", "own"),
    "shuffled feedback, MiniLM": ("MiniLM", "shuffled"),
    "blind, MiniLM": ("MiniLM", "blind"),
    "best of n, MiniLM": ("MiniLM", "fresh"),
}
"""The arms with a sentence encoder as the writer; the first is the method."""
PROGRAMS = 32
"""Programs per run."""
PARTS: dict[str, Any] = {"world": "crane", "metric": "degree"}
"""A task of three parts, each of which counts by itself."""
BATCHES, LARGE = 5, 16
"""Batches per run on it, and programs per batch: Eureka's own numbers."""
RATES = (MAIN, (0.8, 0.0), (0.1, 0.1), (0.8, 0.3))
"""Repair and break rates of the frontier."""
GOOD = (
    PartOfReward(-1.0, "np.linalg.norm(position - dock, axis=1)"),
    PartOfReward(-0.3, "np.linalg.norm(velocity, axis=1)"),
)
"""The hand-written reward in the writer's format."""
FAULTS = 48
"""Number of damaged copies of it, each revised once; half as many for the metric with degrees."""
PARENTS = {"0": (-1.0, 0.0), "above 0, at most 0.9": (0.0, 0.9)}
GRADED_PARENTS = {"at most 0.5": (-1.0, 0.5), "above 0.5, at most 0.9": (0.5, 0.9)}
"""Ranges of the fitness of damaged copies that the tables distinguish."""
REWARDS = ("sparse", "hand-written", "Eureka's winner")
LESSONS = {"from scratch": 0.0, "half easy": 0.5, "easy only": 1.0}
"""Shares of the generations of a training whose episodes begin in easy states."""
RECORDED = {
    "GPT-4, ferry": (1.00, 0.00),
    "GPT-4, hiking": (0.64, 0.14),
    "GPT-4, gripper": (0.38, 0.00),
    "GPT-4, miconic": (0.00, 0.00),
    "GPT-4 without thoughts, ferry": (0.24, 0.12),
    "GPT-3.5, hiking": (0.01, 0.67),
}
"""Repair and break rates of recorded models on planning programs, by ``hunch study genplan`` (L2)."""


# ---- runs -------------------------------------------------------------------------------------------------


class Even(Eureka):
    """Eureka whose writer draws all quantities alike."""

    def _asking(self, lm: Any) -> Writer:
        return SimilarityWriter(lm, math.inf)


EVEN = replace(find("eureka"), name=f"{__name__}:EVEN", agent_class=Even)


def scripted(
    world: dict[str, Any], batch: int, steps: int, repair: float = MAIN[0], damage: float = MAIN[1]
) -> tuple[Arm, ...]:
    """Return Eureka and its controls, with the writer at these dials."""
    return tuple(
        arm(label, find("eureka"), world, writer(repair, damage), steps, settings(feedback, batch), batch)
        for label, feedback in CONTROLS.items()
    )


def settings(feedback: Feedback, batch: int = BATCH) -> EurekaConfig:
    """Return the settings of Eureka, or of a control."""
    return EurekaConfig(population=batch, feedback=feedback, give_up=0)


def encoded(steps: int) -> tuple[Arm, ...]:
    """Return Eureka and its controls with an encoder as the writer, under the graded metric."""
    listed = []
    for label, (name, feedback) in BY_ENCODER.items():
        spec, temperature = ENCODERS[name]
        method = EVEN if temperature == math.inf else find("eureka")
        listed.append(arm(label, method, GRADED, spec, steps, settings(feedback), BATCH))
    return tuple(listed)


def rates(steps: int) -> tuple[Arm, ...]:
    """Return Eureka at the other rates of the frontier."""
    return tuple(
        replace(scripted(WORLD, BATCH, steps, r, b)[0], label=f"repairs {r:g}, breaks {b:g}")
        for r, b in RATES
        if (r, b) != MAIN
    )


def ahead(first: Sequence[Row], second: Sequence[Row]) -> Estimate:
    """Return the fitness of one arm's winners, trained again, minus that of another's, on the same seeds."""
    return over_pairs([one["again"] - other["again"] for one, other in zip(first, second, strict=True)])


# ---- what is told -----------------------------------------------------------------------------------------


def bed_table(seeds: int, folder: Path) -> str:
    """Return the results of the sparse and the hand-written reward in each world."""
    keys = [(bed, kind, seed) for bed in WORLDS for kind in ("sparse", "dense") for seed in range(seeds)]
    found = kept(folder / "runs.jsonl", keys, _bare)
    lines = ["| world | sparse reward | hand-written reward |", "|---|---|---|"]
    for bed in WORLDS:
        cells = [
            over_seeds([row["success"] for row in found if row["key"][:2] == [bed, kind]]).short()
            for kind in ("sparse", "dense")
        ]
        lines.append(f"| {bed} | {' | '.join(cells)} |")
    return "Success at the end of a training.\n\n" + "\n".join(lines)


def _bare(bed: Any, kind: str, seed: int) -> Row:
    env = RewardDesign(world=bed, trials="")
    return {"success": tried(env, getattr(env.world, kind), seed=seed).fitness}


def line_table(listed: Sequence[Arm], seeds: int, batch: int, folder: Path) -> str:
    """Return the results of Eureka and its controls."""
    return _lines(designed(listed, seeds, folder), batch)


def _lines(by_line: Mapping[str, Sequence[Row]], batch: int = BATCH) -> str:
    """Return the results of some arms, of which the first is the method, in Markdown."""
    first = next(iter(by_line))
    lines = [
        f"| arm | fitness when chosen | trained again | success then | programs that failed | "
        f"{first} is ahead by |",
        "|---|---|---|---|---|---|",
    ]
    for line, rows in by_line.items():
        failed = sum(row["failed"] for row in rows) / sum(len(row["found"]) for row in rows)
        difference = "" if line == first else ahead(by_line[first], rows).short()
        cells = [over_seeds([row[name] for row in rows]).short() for name in ("fitness", "again", "success")]
        lines.append(f"| {line} | {' | '.join(cells)} | {failed:.0%} | {difference} |")
    batches = [
        f"- {line}: {', '.join(f'{over_seeds(list(column)).value:.2f}' for column in _columns(rows, batch))}"
        for line, rows in by_line.items()
    ]
    return "\n".join([*lines, "", "Best fitness so far after each batch:", "", *batches])


def _columns(rows: Sequence[Row], batch: int) -> Iterator[tuple[float, ...]]:
    """Yield the best fitness so far after each batch, over the runs."""
    for n in range(batch, len(rows[0]["found"]) + 1, batch):
        yield tuple(max(row["found"][:n]) for row in rows)


def frontier_table(seeds: int, steps: int, folder: Path) -> str:
    """Return the lead of Eureka over best of n by the writer's rates, as table and picture."""
    main = designed(scripted(WORLD, BATCH, steps), seeds, folder.parent / Part(SCRIPTED, ()).folder)
    found = designed(rates(steps), seeds, folder)
    single = main["best of n"]
    lines = ["| repair | break | Eureka, trained again | ahead of best of n by |", "|---|---|---|---|"]
    cells: dict[tuple[float, float], Estimate] = {}
    for r, b in RATES:
        rows = main["Eureka"] if (r, b) == MAIN else found[f"repairs {r:g}, breaks {b:g}"]
        cells[r, b] = ahead(rows, single)
        now = over_seeds([row["again"] for row in rows])
        lines.append(f"| {r:g} | {b:g} | {now.short()} | {cells[r, b].short()} |")
    folder.mkdir(parents=True, exist_ok=True)
    draw_frontier(cells, RECORDED, folder / "frontier.png", "success of Eureka less best of n")
    floor = over_seeds([row["again"] for row in single])
    told = f"Best of n has no parents, so that neither rate counts: {floor.short()}."
    return "\n".join([told, "", *lines, "", f"![Frontier]({folder.name}/frontier.png)"])


# ---- what one revision is worth ---------------------------------------------------------------------------


def revised(world: dict[str, Any], fault: int, told: str) -> Row:
    """Revise a good reward with one randomly damaged part; return the best of a batch of revisions."""
    env = RewardDesign(**world, trials="")
    parents = [_damaged(env, number) for number in (fault, fault + 1)]
    parent = parents[0]
    feedback = {"own": parent.outcome_text(), "shuffled": parents[1].outcome_text(), "blind": ""}[told]
    model = ModelWriter(lm.load(writer(*MAIN), cache=None), Eureka.prompt)
    programs = model.write(env.problem, [parent], feedback, BATCH, first=1_000 * fault)
    found = [tried(env, program, seed=fault).fitness or 0.0 for program in programs]
    before = parent.fitness or 0.0
    return {
        "before": before,
        "best": max(found),
        "better": sum(f > before + 0.05 for f in found) / len(found),
    }


def _damaged(env: RewardDesign, fault: int) -> Attempt:
    """Plant an error of the writer's general kinds in one part of a good reward."""
    rng = np.random.default_rng([fault, 11])
    parts = list(GOOD)
    place = int(rng.integers(len(parts)))
    variables = listed(env.problem.interface)
    parts[place] = damaged(parts[place], variables, evenly(quantities(variables), rng), rng)
    program = written("reward", env.problem.parameters, parts)
    return Attempt(0, program, None).after(tried(env, program, seed=fault))


def revision_table(
    world: dict[str, Any], ranges: Mapping[str, tuple[float, float]], faults: int, folder: Path
) -> str:
    """Return the effect of feedback on one revision, by the fitness of the parent."""
    keys = [(fault, told) for fault in range(faults) for told in ("own", "shuffled", "blind")]
    found = kept(folder / "revisions.jsonl", keys, partial(revised, world))
    lines = [
        "| parent's fitness | shown | parents | better revisions | best of a batch less the parent |",
        "|---|---|---|---|---|",
    ]
    for name, (low, high) in ranges.items():
        for told in ("own", "shuffled", "blind"):
            rows = [row for row in found if row["key"][1] == told and low < row["before"] <= high]
            better = over_pairs([row["better"] for row in rows]).short()
            gain = over_pairs([row["best"] - row["before"] for row in rows]).short()
            lines.append(f"| {name} | {told} | {len(rows)} | {better} | {gain} |")
    return "\n".join(lines)


# ---- a curriculum for the policy --------------------------------------------------------------------------


def lessons_table(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the success of policies trained on rewards, from scratch and after easy first states.

    The rewards are Eureka's winners of the scripted writer, one a seed, and those of the world. All trainings
    have as many generations. ``easy only`` never sees the states of the task in training.
    """
    [arm] = listed
    runs = dict(enumerate(runs_of(arm, seeds, folder.parent / place_name(SCRIPTED))))
    keys = [(kind, share, seed) for kind in REWARDS for share in LESSONS.values() for seed in range(seeds)]
    found = kept(folder / "lessons.jsonl", keys, partial(_taught, runs))
    lines = [
        f"| reward | {' | '.join(LESSONS)} | half easy less from scratch |",
        "|---" * (len(LESSONS) + 2) + "|",
    ]
    for kind in REWARDS:
        by_share = {
            share: [row["success"] for row in found if row["key"][:2] == [kind, share]]
            for share in LESSONS.values()
        }
        lead = over_pairs([a - b for a, b in zip(by_share[0.5], by_share[0.0], strict=True)])
        cells = [over_seeds(values).short() for values in by_share.values()]
        lines.append(f"| {kind} | {' | '.join(cells)} | {lead.short()} |")
    return f"Success at the end of {AGAIN} trainings a seed.\n\n" + "\n".join(lines)


def _taught(runs: Mapping[int, Path], kind: str, share: float, seed: int) -> Row:
    env = RewardDesign(**WORLD, curriculum=share, trials="")
    if kind == "Eureka's winner":
        top = best(attempts_of(runs[seed]))
        program = top.program if top else ""
    else:
        program = env.world.sparse if kind == "sparse" else env.world.dense
    return {"success": again(env, program, first=2_000 + AGAIN * seed)}


# ---- a model of the user's --------------------------------------------------------------------------------


def arms(steps: int, model: str) -> tuple[Arm, ...]:
    """Return Eureka and its controls with one writer."""
    return tuple(
        Arm(
            label,
            RunConfig(
                method="eureka",
                env="hunch/RewardDesign-v0",
                env_options=WORLD,
                lm=model,
                steps=steps,
                envs=BATCH,
                options=settings(feedback),
            ),
        )
        for label, feedback in CONTROLS.items()
    )


def trained_again(folder: Path) -> str:
    """Return the results of every run's winner, trained again with new seeds."""
    rows = ["| arm | fitness when it was chosen | success trained again |", "|---|---|---|"]
    for label, runs in programs_of(folder).items():
        chosen = [winner(run) for run in runs]
        then = over_seeds([line["fitness"] for line in chosen])
        now = over_seeds([again(RewardDesign(**WORLD), line["program"]) for line in chosen])
        rows.append(f"| {label.replace('-', ' ')} | {then} | {now} |")
    return f"Winners are trained again with {AGAIN} new seeds each.\n\n" + "\n".join(rows)


SCRIPTED = f"A writer that repairs {MAIN[0]:g}, breaks {MAIN[1]:g}"
"""Title of the main comparison."""


def _parts(scale: Scale, data: Path) -> list[Part]:
    steps = max(16, round(PROGRAMS * scale.share))
    more = max(LARGE, round(BATCHES * LARGE * scale.share))
    faults = round(FAULTS * scale.share) or 1

    def compared(title: str, listed: tuple[Arm, ...], batch: int = BATCH) -> Part:
        return Part(title, listed, beside=partial(line_table, listed, scale.seeds, batch))

    return [
        Part("The test bed", (), beside=partial(bed_table, scale.seeds)),
        compared("A sentence encoder as the writer", encoded(steps)),
        compared(SCRIPTED, scripted(WORLD, BATCH, steps)),
        compared("A metric with degrees", scripted(GRADED, BATCH, steps)),
        compared("A task of three parts", scripted(PARTS, LARGE, more), LARGE),
        Part("One revision", (), beside=partial(revision_table, WORLD, PARENTS, faults)),
        Part(
            "One revision, with degrees",
            (),
            beside=partial(revision_table, GRADED, GRADED_PARENTS, faults // 2 or 1),
        ),
        Part(
            "At which rates the loop pays", rates(steps), beside=partial(frontier_table, scale.seeds, steps)
        ),
        Part(
            "A curriculum for the policy",
            (),
            beside=partial(lessons_table, scripted(WORLD, BATCH, steps)[:1], scale.seeds),
        ),
        *(Part(model, arms(steps, model), beside=trained_again) for model in scale.lms),
    ]


STUDIES = {
    "eureka": Study(
        "eureka",
        "At which repair and break rates of the writer does Eureka's loop find better rewards than its "
        "controls?",
        "With GPT-4, Eureka beats expert rewards on 83 % of 29 tasks (Ma et al., ICLR 2024).",
        "No model that generates: rewards are drawn from a grammar. In one table MiniLM (L3) chooses what "
        "they are computed from. In the others the writer is a script (L0) that acts on feedback as often as "
        "its dials say, and one answer in ten crashes; it says nothing about language models. The task is "
        "our own world, and a trial is one training by the cross-entropy method. In docking there are four "
        "batches of eight programs instead of five of sixteen.",
        _parts,
        lm_for="eureka",
        seeds=10,
    )
}
