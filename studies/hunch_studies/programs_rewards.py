"""What the studies of rewards as programs share: the world, the writers, and what is kept of a search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hunch import lm
from hunch.envs.design.problem import Trial
from hunch.methods import Method
from hunch.roles.writer.programs import best
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.programs_funsearch import attempts_of, tried
from hunch_studies.similarity_writer import TEMPERATURE, SimilarityWriter
from hunch_studies.study import kept, runs_of
from hunch_studies.worlds.rewards.env import RewardDesign

Row = dict[str, Any]

WORLD: dict[str, Any] = {"world": "docking"}
"""The world in which rewards are designed; chosen by the results of the sparse and the hand-written reward
only."""
GRADED: dict[str, Any] = {**WORLD, "metric": "degree"}
"""The same world with a metric that also distinguishes policies that never succeed, like Eureka's metrics."""
BATCH = 8
"""Programs per batch of Eureka."""
AGAIN = 5
"""Number of new seeds with which a winner is trained again."""
MAIN = (0.4, 0.1)
"""Repair and break rate of the scripted writer."""
ENCODERS: Mapping[str, tuple[str, float]] = {
    "MiniLM": ("minilm", TEMPERATURE),
    "bag of words": ("bag-of-words", TEMPERATURE),
    "weighted words": ("words", TEMPERATURE),
    "even draws": ("words", math.inf),
}
"""Encoders that choose quantities, with the temperature of the draws: the model, two lexical controls and the
uninformed one."""


# ---- writers ----------------------------------------------------------------------------------------------


def writer(repair: float, damage: float) -> str:
    """Return the scripted writer with these dials; one answer in ten crashes."""
    return f"scripted:writer?repair={repair:g}&break={damage:g}&crash=0.1"


@cache
def encoder(name: str) -> SimilarityWriter:
    """Return a writer whose quantities are chosen by an encoder."""
    spec, temperature = ENCODERS[name]
    return SimilarityWriter(lm.load(spec, cache=None), temperature)


# ---- searches ---------------------------------------------------------------------------------------------


def arm(label: str, method: Method, world: Row, lm: str, steps: int, options: Any, envs: int = 1) -> Arm:
    """Return the runs of a search for rewards, whose trials are stored nowhere else."""
    config = RunConfig(
        method=method.name,
        env="hunch/RewardDesign-v0",
        env_options={**world, "trials": ""},
        lm=lm,
        steps=steps,
        envs=envs,
        options=options,
    )
    return Arm(label, config)


def designed(listed: Sequence[Arm], seeds: int, folder: Path) -> dict[str, list[Row]]:
    """Return the winner of each run, trained again, and the fitness of all its programs, by arm and seed."""
    runs = {arm.label: runs_of(arm, seeds, folder) for arm in listed}
    worlds = {arm.label: arm.config.env_options for arm in listed}
    keys = [(label, seed) for seed in range(seeds) for label in runs]
    rows = kept(folder / "winners.jsonl", keys, lambda label, seed: _winner(worlds[label], runs[label][seed]))
    return {label: [row for row in rows if row["key"][0] == label] for label in runs}


def _winner(world: Row, run: Path) -> Row:
    attempts = attempts_of(run)
    top = best(attempts)
    trials = retrained(RewardDesign(**world), top.program) if top else []
    return {
        "fitness": top.fitness if top else 0.0,
        "again": sum(trial.fitness or 0.0 for trial in trials) / AGAIN,
        "success": sum(trial.components.get("success", trial.fitness or 0.0) for trial in trials) / AGAIN,
        "found": [attempt.fitness or 0.0 for attempt in attempts],
        "failed": sum(attempt.fitness is None for attempt in attempts),
        "copied": [attempt.copy_of is not None for attempt in attempts],
        "program": top.program if top else "",
    }


def retrained(env: RewardDesign, program: str, first: int = 1_000) -> list[Trial]:
    """Return new trainings with consecutive seeds."""
    return [tried(env, program, seed=first + i) for i in range(AGAIN)]


def again(env: RewardDesign, program: str, first: int = 1_000) -> float:
    """Return the mean fitness over new trainings with consecutive seeds; a failed one counts as 0."""
    return sum(trial.fitness or 0.0 for trial in retrained(env, program, first)) / AGAIN
