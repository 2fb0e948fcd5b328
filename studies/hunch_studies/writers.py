"""Searches over programs with a small real model as their writer, at equal numbers of programs.

hunch study writers --lm qwen-coder-1.5b

The beds and the arms were fixed before the first search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import gymnasium as gym
import numpy as np

from hunch.envs.design.problem import DesignProblem, Trial
from hunch.methods.program.code_policy import CodePolicyConfig
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.writer.programs import Attempt, best
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_json
from hunch_studies.planners import table as table_of
from hunch_studies.programs_funsearch import attempts_of
from hunch_studies.programs_policies import MUTATED
from hunch_studies.study import Part, Scale, Study, runs_of
from hunch_studies.writers_beds import BEDS, Bed, bed_of
from hunch_studies.writers_openevolve import evolved_by_openevolve

MODEL: Final = "qwen-coder-1.5b"
"""The writer, unless others are named."""
PROGRAMS: Final = 64
"""Programs of a run: about five minutes of two cores."""
STREAMS: Final = 8
"""Programs that are written at once."""
AFTER: Final = (8, 16, 32, 64)
"""Numbers of programs after which the best is shown."""
BEST_OF_N: Final = "best of n"
RANDOM: Final = "random changes of a first program"
OPENEVOLVE: Final = "openevolve"
FAILURES: Final = ("no program", "not Python", "another function", "an error")
"""Why a program may fail: there is none, it cannot be read or lacks what was asked for, or it stops."""

SEARCHES: Final[Mapping[str, Mapping[str, Any]]] = {
    BEST_OF_N: {"search": "single"},
    "bandit over kinds of request": {"search": "bandit", "islands": 2},
    "hill climbing, repair first": {"search": "hill", "repair": 2},
}
"""The searches with the model as writer."""


def arms(bed: Bed, model: str, programs: int) -> tuple[Arm, ...]:
    """Return the searches with the model, and the mutator, which knows nothing, in its place."""
    shared: dict[str, Any] = {"retries": 0, "give_up": 0}
    asked = {**shared, "request": "plain", "temperature": 0.9, "max_tokens": 500}
    run = partial(RunConfig, env=bed.env, env_options=dict(bed.options), steps=programs, envs=STREAMS)
    searches = [
        Arm(label, run(method="code-policy", lm=model, options=CodePolicyConfig(**asked, **options)))
        for label, options in SEARCHES.items()
    ]
    mutated = CodePolicyConfig(**shared, search="single")
    return (*searches, Arm(RANDOM, run(method=MUTATED.name, options=mutated)))


def tried(env: str, options: Mapping[str, Any], program: str) -> Trial:
    """Return the trial of a program in an environment with these options."""
    made = gym.make(env, **options).unwrapped
    assert isinstance(made, DesignProblem)
    made.reset(seed=0)
    trial: Trial = made.step(program)[-1]["raw"]
    return trial


def result(bed: Bed, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """Return what a run found: its best programs over time, and the winner's fitness on unseen inputs."""
    top = best(attempts)
    fitness = [bed.floor if attempt.fitness is None else attempt.fitness for attempt in attempts]
    so_far = np.maximum.accumulate(fitness)
    unseen = None
    if top is not None and bed.unseen:
        unseen = tried(bed.env, bed.unseen, top.program).fitness
    elif top is not None:  # such as a world model, with held-out transitions
        unseen = top.components.get(bed.component)
    return {
        "best": {n: float(so_far[n - 1]) for n in AFTER if n <= len(attempts)},
        "unseen": bed.floor if unseen is None else unseen,
        "failed": sum(attempt.fitness is None for attempt in attempts) / len(attempts),
        "copies": sum(attempt.copy_of is not None for attempt in attempts) / len(attempts),
        "program": top.program if top else "",
        "fitness": [attempt.fitness for attempt in attempts],
        "errors": [attempt.error for attempt in attempts],
    }


def failure_of(error: str) -> str:
    """Return in words why a program failed, given its error: one of :data:`FAILURES`."""
    if error == "the answer holds no code":
        return "no program"
    if error.startswith("SyntaxError"):
        return "not Python"
    if error.startswith("it does not define") or "cannot be called as" in error:
        return "another function"
    return "an error"


def table(bed: Bed, model: str, seeds: int, programs: int, folder: Path) -> str:
    """Return the results of the searches on a bed."""
    found, tokens = results(bed, arms(bed, model, programs), seeds, folder)
    evolved = evolved_by_openevolve(bed, model, seeds, programs, folder / "openevolve.jsonl")
    if evolved is not None:
        found[OPENEVOLVE] = [result(bed, [Attempt.read(line) for line in run]) for run in evolved]
    lines = [compared(found, tokens, {BEST_OF_N: BEST_OF_N}, [n for n in AFTER if n <= programs])]
    if evolved is None:
        lines += [
            "",
            "openevolve has no row: it needs `pip install openevolve`, and a model behind a server.",
        ]
    return "\n".join(lines)


def results(
    bed: Bed, listed: Sequence[Arm], seeds: int, folder: Path
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[int]]]:
    """Return what the runs of each arm found, and the tokens that their writers read and wrote."""
    runs = {arm.label: runs_of(arm, seeds, folder) for arm in listed}
    found = {label: [result(bed, attempts_of(run)) for run in own] for label, own in runs.items()}
    return found, {label: [_tokens(run) for run in own] for label, own in runs.items()}


def compared(
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    tokens: Mapping[str, Sequence[int]],
    others: Mapping[str, str],
    after: Sequence[int],
) -> str:
    """Return a table of searches, in Markdown, with the leads of their winners paired by seed.

    Args:
        found: What :func:`result` returns for each run, by arm.
        tokens: Tokens of each run by arm, for arms with a model.
        others: Arms over which leads are shown, and what they are called in the head of the table.
        after: Numbers of programs after which the best is shown.
    """
    columns = ["arm", *(f"best of {n}" for n in after), "winner, unseen", "failed", "copies", "tokens"]
    columns += [f"ahead of {name} by" for name in others.values()]
    lines = []
    for label, rows in found.items():
        cells = [over_seeds([row["best"][n] for row in rows]).short() for n in after]
        cells.append(over_seeds([row["unseen"] for row in rows]).short())
        cells += [f"{np.mean([row[share] for row in rows]):.0%}" for share in ("failed", "copies")]
        cells.append(f"{np.mean(tokens[label]):,.0f}" if label in tokens else "")
        for other in others:
            pairs = zip(rows, found.get(other, ()), strict=other in found)
            leads = [row["unseen"] - base["unseen"] for row, base in pairs]
            cells.append(over_pairs(leads).short() if leads and label != other else "")
        lines.append([label, *cells])
    return table_of(" | ".join(columns), lines)


def _tokens(run: Path) -> int:
    """Return the tokens that a run's writer read and wrote."""
    usage = (read_json(run / "summary.json") or {}).get("usage", {})
    return int(usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0))


def _parts(scale: Scale, data: Path) -> list[Part]:
    programs = max(2 * STREAMS, round(PROGRAMS * scale.share))
    parts = []
    beds = dict(BEDS)
    for part in scale.parts:
        if part in gym.registry and not any(part in name for name in BEDS):
            beds[part] = bed_of(part)
    for model in scale.lms or (MODEL,):
        for name, bed in beds.items():
            beside = partial(table, bed, model, scale.seeds, programs)
            title = name if len(scale.lms) < 2 else f"{name}, {model}"
            parts.append(Part(title, arms(bed, model, programs), beside=beside, apart=True))
    return parts


STUDIES = {
    "writers": Study(
        "writers",
        "With a small real model as the writer: does a search find better programs than asking afresh?",
        "None for writers of this size.",
        "A table counts programs; tokens stand beside it. openevolve asks in its own words.",
        _parts,
        lm_for="code-policy",
        seeds=5,
    )
}
