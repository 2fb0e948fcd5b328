"""Policies as code: a comparison of search rules, with the same mutator and equal numbers of evaluations.

hunch study code-policies
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hunch.envs.design.policy import PolicyCode
from hunch.methods.method import Method
from hunch.methods.program.code_policy import CodePolicy, CodePolicyConfig
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.writer.programs import best
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies.programs_funsearch import Mutating, attempts_of, tried
from hunch_studies.study import Part, Scale, Study, runs_of

__all__ = ["MUTATED", "STUDIES", "Mutated"]

Row = dict[str, Any]

ENV = "hunch/PolicyCode-v0"
BASES: dict[str, dict[str, Any]] = {
    "CartPole-v1": {"episodes": 5},
    "FrozenLake8x8-v1": {"episodes": 10},
}
"""The environments, and the number of episodes per program."""
PROGRAMS = {"CartPole-v1": 300, "FrozenLake8x8-v1": 60}
"""Programs per run. CartPole pays every step, so that a better program shows before it is good."""
TESTED = 30
"""Further episodes in which a winner is evaluated."""
LINES: dict[str, dict[str, Any]] = {
    "hill climbing": {"search": "drift"},
    "islands": {"search": "islands"},
    "random": {"search": "single"},
}
"""The search rules."""
CLIMBED = ("CartPole-v1",)
"""Where hill climbing without drift is tried, too."""
STREAMS = 4
"""Programs per batch."""


class Mutated(Mutating, CodePolicy):
    """A search of policies with the mutator as its writer."""


MUTATED = Method(
    f"{__name__}:MUTATED",
    Mutated,
    "policies as code, with a random mutator of syntax trees as the writer",
    "search as in FunSearch",
    acts="program",
    data="none",
)


def arms(base: str, steps: int) -> tuple[Arm, ...]:
    """Return the search rules."""
    place = {"base": base, **BASES[base]}
    run = RunConfig(method=MUTATED.name, env=ENV, env_options=place, steps=steps, envs=STREAMS)
    listed = [
        Arm(label, replace(run, options=CodePolicyConfig(give_up=0, **options)))
        for label, options in LINES.items()
    ]
    if base in CLIMBED:
        only_up = CodePolicyConfig(give_up=0, search="hill")
        listed.append(Arm("hill climbing, only up", replace(run, options=only_up)))
    return tuple(listed)


def searched(base: str, run: Path) -> Row:
    """Return a run's winner and its results in other episodes, too."""
    attempts = attempts_of(run)
    top = best(attempts)
    program = top.program if top else PolicyCode(base=base, **BASES[base]).problem.start
    return {
        "fitness": top.fitness if top else None,
        "held_out": _held_out(base, program),
        "failed": sum(attempt.fitness is None for attempt in attempts),
    }


def _held_out(base: str, program: str) -> float | None:
    return tried(PolicyCode(base=base, episodes=TESTED, split="test"), program).fitness


def table(base: str, seeds: int, steps: int, folder: Path) -> str:
    """Return the results of each rule in an environment, in its own episodes and in others."""
    runs = {arm.label: runs_of(arm, seeds, folder) for arm in arms(base, steps)}
    found = {line: [searched(base, run) for run in own] for line, own in runs.items()}
    env = PolicyCode(base=base, **BASES[base])
    lines = [
        f"{steps} programs per run; the winner in {TESTED} other episodes.",
        "",
        "| arm | mean return | in other episodes | programs that failed | ahead of random by |",
        "|---|---|---|---|---|",
        f"| the first program | {tried(env, env.problem.start).fitness:.2f} "
        f"| {_held_out(base, env.problem.start):.2f} | | |",
    ]
    single = found["random"]
    for line, rows in found.items():
        gaps = [one["held_out"] - other["held_out"] for one, other in zip(rows, single, strict=True)]
        cells = [over_seeds([row[name] for row in rows]).short() for name in ("fitness", "held_out")]
        cells.append(f"{sum(row['failed'] for row in rows) / (steps * len(rows)):.0%}")
        cells.append("" if line == "random" else over_pairs(gaps).short())
        lines.append(f"| {line} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    parts = []
    for base, n in PROGRAMS.items():
        steps = max(8, round(n * scale.share))
        parts.append(Part(base, arms(base, steps), beside=partial(table, base, scale.seeds, steps)))
    return parts


STUDIES = {
    "code-policies": Study(
        "code-policies",
        "Do searches over programs find better policies than random changes of the first one?",
        "There is no single published result; the searches are FunSearch's.",
        "The writer is a random mutator of syntax trees (L0), which knows nothing about the task.",
        _parts,
        seeds=10,
    )
}
