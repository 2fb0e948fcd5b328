"""Study of "Exploiting Contextual Structure to Generate Useful Auxiliary Tasks" (Quartey, Shah and Konidaris,
2023): the value of auxiliary tasks, and their cost for the target.

    hunch study task-explore
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch import train
from hunch.envs import make
from hunch.envs.home_grid import THINGS
from hunch.lm import load
from hunch.methods.goal.task_explore import TaskExplore
from hunch.rl.episodes import evaluate
from hunch.rl.statistics import area, over_pairs, over_seeds
from hunch.runs.compare import folder_name
from hunch.runs.files import read_json, write_atomically
from hunch_studies.cost import COST, cost, spent
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study

ENV: Final = "hunch/HomeGrid-v0"
BUDGETS: Final = (3_000, 10_000)


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    label: str
    options: dict[str, Any] = field(default_factory=dict)


WALLED: Final = 40_000
"""Budget in homes whose rooms have walls and a door."""
LONG: Final = 240
"""Step limit of an episode there, four times as long."""
LINES: Final = (
    Line("target alone", {"tasks": 0}),
    Line("TaskExplore"),
    Line("random behaviour", {"behaviour": "random"}),
    Line("TaskExplore, epsilon 0.6", {"epsilon": 0.6}),
    Line("random swaps", {"swaps": "random"}),
    Line("TaskExplore, all formulas", {"counterfactual": "all"}),
    Line("random behaviour, all formulas", {"behaviour": "random", "counterfactual": "all"}),
)


def home(seed: int, goal: str, walls: bool) -> Any:
    """The home of a seed, with open rooms or with walls."""
    limit = {"max_steps": LONG} if walls else {}
    return make(ENV, home_seed=seed, goal=goal, walls=walls, **limit)


def target(seed: int, walls: bool) -> str:
    """The target of a seed: three things one after the other, or two where there are walls."""
    first, second, third = np.random.default_rng([seed, 7]).choice(THINGS, 3, replace=False).tolist()
    return f"F ({first} & F {second})" if walls else f"F ({first} & F ({second} & F {third}))"


def path(env: Any) -> set[tuple[int, int]]:
    """The cells of a shortest way through a task."""
    env.reset(seed=0)
    inner, cells, over = env.unwrapped, set[tuple[int, int]](), False
    while not over:
        _, _, terminated, truncated, info = env.step(inner.oracle()[0])
        cells.add(info["raw"])
        over = terminated or truncated
    return cells


def learnt(line: Line, encoder: str, walls: bool, steps: int, seed: int) -> dict[str, Any]:
    """Return how often the target was done in training, and the values of all policies afterwards."""
    goal, place = target(seed, walls), partial(home, seed, walls=walls)
    agent = TaskExplore(encoder=load(encoder, cache=None), **line.options)
    result = train(agent, place(goal), steps, seed=seed)
    episodes = result.episodes
    worth, lengths = [], []
    for task in agent.tasks:
        played = evaluate(agent.player, [place(task)], 5, seed)
        worth.append(float(np.mean([e.success for e in played])))
    own = path(place(goal))
    for task in list(agent.tasks)[1:]:
        other = path(place(task))
        lengths.append(len(own & other) / len(other))
    curve = area([e.step for e in episodes], [e.success for e in episodes], steps)
    auxiliary = float(np.mean(worth[1:])) if worth[1:] else None
    shared = float(np.mean(lengths)) if lengths else None
    told = {"curve": curve, "target": worth[0], "auxiliary": auxiliary, "shared": shared}
    return {**told, "evidence": result.evidence, **spent(result)}


def kept(line: Line, encoder: str, walls: bool, steps: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return the same from its file, or measure it now."""
    file = folder / f"{folder_name(f'{line.label} {encoder}')}-{seed}.json"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(learnt(line, encoder, walls, steps, seed)).encode())
    known = read_json(file)
    assert known is not None
    return known


def measured(steps: int, walls: bool, encoders: tuple[str, ...], seeds: int, folder: Path) -> str:
    """A row for each line, and the differences that the paper is about, in Markdown."""
    listed = [(line, "minilm") for line in (LINES[:3] if walls else LINES)]
    listed += [(Line(f"TaskExplore, {spec}"), spec) for spec in encoders]
    found = {line.label: [kept(line, e, walls, steps, s, folder) for s in range(seeds)] for line, e in listed}
    rows = []
    for line, _ in listed:
        runs = found[line.label]
        told = [_over(runs, name) for name in ("curve", "target", "auxiliary", "shared")]
        rows.append((line.label, runs[0]["evidence"] or "-", *told, cost(runs)))
    head = (
        f"arm | evidence | target, while training | target, trained | auxiliary tasks | cells shared | {COST}"
    )
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
        if one in found and other in found
    ]
    return f"{table(head, rows)}\n\n{table('of | arm | minus | paired by seed', less)}"


def _over(runs: list[dict[str, Any]], name: str) -> str:
    return "-" if runs[0][name] is None else str(over_seeds([one[name] for one in runs]))


def _parts(scale: Scale, data: Path) -> list[Part]:
    places = [*((f"{full:,} steps", full, False) for full in BUDGETS), ("Rooms with doors", WALLED, True)]
    return [
        Part(title, (), beside=partial(measured, scale.steps(full), walls, scale.lms, scale.seeds))
        for title, full, walls in places
    ]


STUDIES = {
    "task-explore": Study(
        "task-explore",
        "Are tasks with similar objects learned at no cost while the target is pursued?",
        "Auxiliary tasks do not hurt the target, their policies are better than those learned from random "
        "behaviour, and they share more of their paths with the target than random ones (Quartey, Shah and "
        "Konidaris, 2023).",
        "The home is ours, with another layout and another target of three objects for each seed. Only names "
        "are embedded, by a sentence encoder (`minilm`, L3). A bag of words finds no two names similar, so "
        "its swaps are the random ones. The curriculum is not included.",
        _parts,
        lm_for="",
        seeds=8,
    )
}
