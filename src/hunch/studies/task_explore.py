"""Study of "Exploiting Contextual Structure to Generate Useful Auxiliary Tasks" (Quartey, Shah and Konidaris,
2023): the value of auxiliary tasks, and their cost for the target.

    hunch study task-explore
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.envs import make
from hunch.envs.home_grid import THINGS
from hunch.lm import load
from hunch.methods.goal.task_explore import TaskExplore
from hunch.rl.episodes import evaluate
from hunch.rl.statistics import area, over_pairs, over_seeds
from hunch.runs.compare import folder_name
from hunch.runs.files import read_json, write_atomically
from hunch.runs.loop import train
from hunch.studies.planners import table
from hunch.studies.study import Part, Scale, Study

ENV: Final = "hunch/HomeGrid-v0"
BUDGETS: Final = (3_000, 10_000)


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    label: str
    options: dict[str, Any] = field(default_factory=dict)


LINES: Final = (
    Line("target alone", {"tasks": 0}),
    Line("TaskExplore"),
    Line("random behaviour", {"behaviour": "random"}),
    Line("TaskExplore, epsilon 0.6", {"epsilon": 0.6}),
    Line("random swaps", {"swaps": "random"}),
    Line("TaskExplore, all formulas", {"counterfactual": "all"}),
    Line("random behaviour, all formulas", {"behaviour": "random", "counterfactual": "all"}),
)


@cache
def _model(spec: str) -> Any:
    return load(spec)


def home(seed: int, goal: str) -> Any:
    """The home of a seed."""
    return make(ENV, home_seed=seed, goal=goal)


def target(seed: int) -> str:
    """The target of a seed: three things, one after the other."""
    first, second, third = np.random.default_rng([seed, 7]).choice(THINGS, 3, replace=False).tolist()
    return f"F ({first} & F ({second} & F {third}))"


def path(env: Any) -> set[tuple[int, int]]:
    """The cells of a shortest way through a task."""
    env.reset(seed=0)
    inner, cells, over = env.unwrapped, set[tuple[int, int]](), False
    while not over:
        _, _, terminated, truncated, info = env.step(inner.oracle()[0])
        cells.add(info["raw"])
        over = terminated or truncated
    return cells


def learnt(line: Line, encoder: str, steps: int, seed: int) -> dict[str, Any]:
    """Return how often the target was done in training, and the values of all policies afterwards."""
    goal = target(seed)
    agent = TaskExplore(encoder=_model(encoder), **line.options)
    episodes = train(agent, home(seed, goal), steps, seed=seed).episodes
    worth, lengths = [], []
    for task in agent.tasks:
        played = evaluate(agent.player, [home(seed, task)], 5, seed)
        worth.append(float(np.mean([e.success for e in played])))
    own = path(home(seed, goal))
    for task in list(agent.tasks)[1:]:
        other = path(home(seed, task))
        lengths.append(len(own & other) / len(other))
    curve = area([e.step for e in episodes], [e.success for e in episodes], steps)
    auxiliary = float(np.mean(worth[1:])) if worth[1:] else None
    shared = float(np.mean(lengths)) if lengths else None
    return {"curve": curve, "target": worth[0], "auxiliary": auxiliary, "shared": shared}


def kept(line: Line, encoder: str, steps: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return the same from its file, or measure it now."""
    file = folder / f"{folder_name(f'{line.label} {encoder}')}-{seed}.json"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(learnt(line, encoder, steps, seed)).encode())
    known = read_json(file)
    assert known is not None
    return known


def measured(steps: int, encoders: tuple[str, ...], seeds: int, folder: Path) -> str:
    """A row for each line, and the differences that the paper is about, in Markdown."""
    listed = [(line, "minilm") for line in LINES]
    listed += [(Line(f"TaskExplore, {spec}"), spec) for spec in encoders]
    found = {line.label: [kept(line, e, steps, s, folder) for s in range(seeds)] for line, e in listed}
    rows = []
    for line, encoder in listed:
        chooses = line.options.get("tasks", 1) and line.options.get("swaps") != "random"
        runs = found[line.label]
        told = [_over(runs, name) for name in ("curve", "target", "auxiliary", "shared")]
        rows.append((line.label, _model(encoder).evidence if chooses else "-", *told))
    head = "arm | evidence | target, while training | target, trained | auxiliary tasks | cells shared"
    pairs = (
        ("auxiliary", "TaskExplore", "random behaviour"),
        ("auxiliary", "TaskExplore, epsilon 0.6", "random behaviour"),
        ("auxiliary", "TaskExplore, all formulas", "random behaviour, all formulas"),
        ("auxiliary", "TaskExplore", "random swaps"),
        ("shared", "TaskExplore", "random swaps"),
        ("curve", "TaskExplore", "target alone"),
    )
    less = [
        (
            name,
            one,
            other,
            over_pairs([a[name] - b[name] for a, b in zip(found[one], found[other], strict=True)]),
        )
        for name, one, other in pairs
    ]
    return f"{table(head, rows)}\n\n{table('of | arm | less | seed by seed', less)}"


def _over(runs: list[dict[str, Any]], name: str) -> str:
    return "-" if runs[0][name] is None else str(over_seeds([one[name] for one in runs]))


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [
        Part(
            f"{full:,} steps",
            (),
            beside=partial(measured, scale.steps(full), scale.lms, scale.seeds),
        )
        for full in BUDGETS
    ]


STUDIES = {
    "task-explore": Study(
        "task-explore",
        "Are tasks with similar things in the target's place learnt for nothing while it is pursued?",
        "Auxiliary tasks do not hurt the target, their policies are better than those that are learnt from "
        "random behaviour, and the tasks share more of their ways with the target than random ones (Quartey "
        "et al., 2023).",
        "A home of ours, with another layout and another target of three things for each seed. Names alone "
        "are embedded, by a sentence encoder (`minilm`, L3). A bag of words finds no two names alike, so "
        "that its swaps are the random ones. The curriculum is left out.",
        _parts,
        lm_for="",
        seeds=8,
    )
}
