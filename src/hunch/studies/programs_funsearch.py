"""FunSearch: a comparison of rules of choosing parents, with the same mutator and equal evaluations.

hunch study funsearch
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hunch.envs.design.bin_packing import BEST_FIT, FIRST_FIT, BinPacking
from hunch.envs.design.cap_set import KNOWN
from hunch.envs.design.problem import DesignProblem, Trial
from hunch.methods.program.funsearch import FunSearchConfig
from hunch.rl.statistics import Estimate, over_seeds
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import read_lines
from hunch.studies.study import Part, Scale, Study

RULES: dict[str, dict[str, Any]] = {
    "islands and clusters": {},
    "one island": {"islands": 1, "reset_every": 0},
    "hill climbing": {"search": "hill"},
    "random": {"search": "single"},
}
"""The lines, and how each differs from FunSearch."""
SIZE: dict[str, Any] = {"items": 40}
"""Of the instances, which are packed item by item in a sandbox."""


def arms(env: str, steps: int, models: Iterable[str] = (), **env_options: Any) -> tuple[Arm, ...]:
    """The rules with the mutator, and FunSearch with models of the user's."""
    lines = [(label, "scripted:mutator", options) for label, options in RULES.items()]
    lines += [(f"islands and clusters, {lm}", lm, {}) for lm in models]
    return tuple(
        Arm(
            label,
            RunConfig(
                method="funsearch",
                env=env,
                lm=lm,
                steps=steps,
                envs=4,
                env_options=env_options,
                options=FunSearchConfig(**options),
            ),
        )
        for label, lm, options in lines
    )


def programs_of(folder: Path) -> dict[str, list[list[dict[str, Any]]]]:
    """The attempts of all runs of a part, by the folder of its arm."""
    found: dict[str, list[list[dict[str, Any]]]] = {}
    for path in sorted(folder.glob("*/seed-*/programs.jsonl")):
        found.setdefault(path.parts[-3], []).append(read_lines(path))
    return found


def winner(attempts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The fittest attempt of a run, the first of equal ones."""
    fit = [attempt for attempt in attempts if attempt["fitness"] is not None]
    return max(fit, key=lambda attempt: (attempt["fitness"], -attempt["number"]))


def packed(folder: Path) -> str:
    """The winners of all runs on instances that no search has seen, beside first fit and best fit."""
    train, test = BinPacking(**SIZE, instances=10), BinPacking(**SIZE, split="test")
    rows = [
        "| arm | excess to train | excess held out | below best fit | programs that failed |",
        "|---|---|---|---|---|",
    ]
    floor = _excess(test, BEST_FIT)
    for name, program in (("first fit", FIRST_FIT), ("best fit", BEST_FIT)):
        rows.append(f"| {name} | {_excess(train, program):.2%} | {_excess(test, program):.2%} | | |")
    for arm, runs in programs_of(folder).items():
        best = [winner(run)["program"] for run in runs]
        seen, held = ([_excess(env, program) for program in best] for env in (train, test))
        failed = np.mean([attempt["fitness"] is None for run in runs for attempt in run])
        below = sum(excess < floor for excess in held)
        rows.append(
            f"| {arm.replace('-', ' ')} | {_percent(over_seeds(seen))} | {_percent(over_seeds(held))} | "
            f"{below} of {len(held)} | {failed:.0%} |"
        )
    return "Bins beyond the lower bound, as a share of it; interquartile mean over seeds.\n\n" + "\n".join(
        rows
    )


def _excess(env: BinPacking, program: str) -> float:
    return tried(env, program).components["excess"]


def tried(env: DesignProblem, program: str, seed: int = 0) -> Trial:
    """The trial of a program."""
    env.reset(seed=seed)
    trial = env.step(program)[-1]["raw"]
    assert isinstance(trial, Trial)
    return trial


def _percent(estimate: Estimate) -> str:
    return f"{estimate.value:.2%} [{estimate.low:.2%}, {estimate.high:.2%}]"


def capped(n: int) -> Callable[[Path], str]:
    """Tells the largest cap sets found."""

    def told(folder: Path) -> str:
        rows = [f"Known: {KNOWN[n]}.", "", "| arm | size, over seeds | largest |", "|---|---|---|"]
        for arm, runs in programs_of(folder).items():
            sizes = [winner(run)["fitness"] for run in runs]
            mean = over_seeds(sizes)
            rows.append(
                f"| {arm.replace('-', ' ')} | {mean.value:.1f} [{mean.low:.1f}, {mean.high:.1f}] "
                f"| {max(sizes):.0f} |"
            )
        return "\n".join(rows)

    return told


def _parts(scale: Scale, data: Path) -> list[Part]:
    packing, cap = "hunch/Heuristic-BinPacking-v0", "hunch/Heuristic-CapSet-v0"
    steps = scale.steps(1_000)
    return [
        Part(
            "Online bin packing",
            arms(packing, steps, scale.lms, **SIZE, instances=10),
            beside=packed,
        ),
        *(
            Part(f"Cap sets in dimension {n}", arms(cap, steps, scale.lms, n=n), beside=capped(n))
            for n in (4, 5)
        ),
    ]


STUDIES = {
    "funsearch": Study(
        "funsearch",
        "Do islands and clusters find better programs than simpler rules, with the same writer?",
        "FunSearch found heuristics for online bin packing below best fit (3.11 % against 5.37 % excess on "
        "the OR-library's third set), and a cap set of 512 in dimension 8, with millions of samples.",
        "The writer is a random mutator of syntax trees (L0): this compares rules of choosing parents, and "
        "says nothing about language models. Instances are small, of 40 Weibull items, ten to train and "
        "twenty held out; a run tries 1,000 programs. Islands are emptied after counted programs. A "
        "cluster's score is the fitness, not that of the last input.",
        _parts,
        lm_for="funsearch",
        seeds=4,
    )
}
