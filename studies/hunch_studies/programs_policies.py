"""Policies as code: a comparison of search rules, with the same mutator and equal numbers of evaluations.

hunch study code-policies
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hunch
from hunch.envs.design.policy import PolicyCode
from hunch.methods.program.code_policy import CodePolicy
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.roles.program import Mutator, best
from hunch_studies.programs_funsearch import tried
from hunch_studies.study import Part, Scale, Study, kept

Row = dict[str, Any]

BASES: dict[str, dict[str, Any]] = {
    "FrozenLake8x8-v1": {"episodes": 10},
}
"""The environments, and the number of episodes per program."""
PROGRAMS = {"FrozenLake8x8-v1": 60}
"""Programs per run."""
TESTED = 30
"""Further episodes in which a winner is evaluated."""
LINES: dict[str, dict[str, Any]] = {
    "hill climbing": {"search": "hill"},
    "islands": {"search": "islands"},
    "random": {"search": "single"},
}
"""The search rules."""
STREAMS = 4
"""Programs per batch."""


def searched(base: str, steps: int, line: str, seed: int) -> Row:
    """Run a rule; return its winner's results in other episodes, too."""
    agent = CodePolicy(Mutator(), give_up=0, **LINES[line])
    places = [PolicyCode(base=base, **BASES[base]) for _ in range(STREAMS)]
    hunch.train(agent, places, steps, seed=seed)
    top = best(agent.attempts)
    program = top.program if top else places[0].problem.start
    return {
        "fitness": top.fitness if top else None,
        "held_out": _held_out(base, program),
        "failed": sum(attempt.fitness is None for attempt in agent.attempts),
        "program": program,
    }


def _held_out(base: str, program: str) -> float | None:
    return tried(PolicyCode(base=base, episodes=TESTED, split="test"), program).fitness


def table(base: str, seeds: int, steps: int, folder: Path) -> str:
    """Return the results of each rule in an environment, in its own episodes and in others."""
    keys = [(line, seed) for seed in range(seeds) for line in LINES]
    found = kept(folder / "runs.jsonl", keys, partial(searched, base, steps))
    env = PolicyCode(base=base, **BASES[base])
    lines = [
        f"{steps} programs per run; the winner in {TESTED} other episodes.",
        "",
        "| arm | mean return | in other episodes | programs that failed | ahead of random by |",
        "|---|---|---|---|---|",
        f"| the first program | {tried(env, env.problem.start).fitness:.2f} "
        f"| {_held_out(base, env.problem.start):.2f} | | |",
    ]
    single = _rows(found, "random")
    for line in LINES:
        rows = _rows(found, line)
        gaps = [one["held_out"] - other["held_out"] for one, other in zip(rows, single, strict=True)]
        cells = [over_seeds([row[name] for row in rows]).short() for name in ("fitness", "held_out")]
        cells.append(f"{sum(row['failed'] for row in rows) / (steps * len(rows)):.0%}")
        cells.append("" if line == "random" else over_pairs(gaps).short())
        lines.append(f"| {line} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _rows(found: Sequence[Row], line: str) -> list[Row]:
    return sorted((row for row in found if row["key"][0] == line), key=lambda row: int(row["key"][1]))


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [
        Part(base, (), beside=partial(table, base, scale.seeds, max(8, round(n * scale.share))))
        for base, n in PROGRAMS.items()
    ]


STUDIES = {
    "code-policies": Study(
        "code-policies",
        "Do searches over programs find better policies than random changes of the first one?",
        "There is no single published result; the searches are FunSearch's.",
        "The writer is a random mutator of syntax trees (L0), which knows nothing about the task. There is "
        "only one environment.",
        _parts,
        seeds=5,
    )
}
