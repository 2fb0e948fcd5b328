"""Study of "Exploiting Contextual Structure to Generate Useful Auxiliary Tasks" (Quartey, Shah and Konidaris,
2023): the value of auxiliary tasks, and their cost for the target.

    hunch study task-explore
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.envs import make
from hunch.rl.episodes import evaluate
from hunch.rl.statistics import area, over_pairs, over_seeds
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.loading import load_agent
from hunch.runs.stored import finished
from hunch_contrib.goal.task_explore import TaskExplore, TaskExploreConfig
from hunch_studies.cost import COST, cost, spent
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Seeded, Study, kept, runs_of
from hunch_studies.worlds.home_grid import THINGS

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
    Line("curriculum", {"behaviour": "curriculum"}),
    Line("curriculum, random swaps", {"behaviour": "curriculum", "swaps": "random"}),
    Line("TaskExplore, all formulas", {"counterfactual": "all"}),
    Line("random behaviour, all formulas", {"behaviour": "random", "counterfactual": "all"}),
)
WALLED_LINES: Final = (
    *("target alone", "TaskExplore", "random behaviour"),
    *("curriculum", "curriculum, random swaps"),
)
"""The lines where rooms have walls."""


def place(seed: int, walls: bool) -> dict[str, Any]:
    """Return the home of a seed and its target, as options of the environment."""
    limit = {"max_steps": LONG} if walls else {}
    return {"home_seed": seed, "goal": target(seed, walls), "walls": walls, **limit}


def arm(line: Line, walls: bool, steps: int) -> Seeded:
    """Return the runs of a line."""
    options = TaskExploreConfig(**line.options)
    config = RunConfig(method="task-explore", env=ENV, steps=steps, options=options)
    return Seeded(line.label, config, settings_by_seed=partial(_own, walls))


def _own(walls: bool, seed: int) -> dict[str, Any]:
    return {"env_options": place(seed, walls)}


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


def learnt(run: Path) -> dict[str, Any]:
    """Return how often the target was done in training, and the values of all policies afterwards."""
    agent, config = load_agent(run)
    result = finished(run)
    assert isinstance(agent, TaskExplore)
    assert result is not None
    homes = {task: make(ENV, **{**config.env_options, "goal": task}) for task in agent.tasks}
    played = [evaluate(agent.player, [env], 5, config.seed) for env in homes.values()]
    worth = [float(np.mean([e.success for e in own])) for own in played]
    own, *others = map(path, homes.values())
    lengths = [len(own & other) / len(other) for other in others]
    episodes = result.episodes
    curve = area([e.step for e in episodes], [e.success for e in episodes], config.steps)
    auxiliary = float(np.mean(worth[1:])) if worth[1:] else None
    shared = float(np.mean(lengths)) if lengths else None
    told = {"curve": curve, "target": worth[0], "auxiliary": auxiliary, "shared": shared}
    return {**told, "evidence": result.evidence, **spent(result)}


def arms(steps: int, walls: bool) -> tuple[Seeded, ...]:
    """Return all lines, or the first of them where there are walls."""
    return tuple(arm(line, walls, steps) for line in LINES if not walls or line.label in WALLED_LINES)


def measured(listed: Sequence[Arm], seeds: int, folder: Path) -> str:
    """A row for each line, and the differences that the paper is about, in Markdown."""
    runs = {arm.label: runs_of(arm, seeds, folder) for arm in listed}
    keys = [(label, seed) for label in runs for seed in range(seeds)]
    measured = kept(folder / "learnt.jsonl", keys, lambda label, seed: learnt(runs[label][seed]))
    found = {label: [row for row in measured if row["key"][0] == label] for label in runs}
    rows = []
    for label, own in found.items():
        told = [_over(own, name) for name in ("curve", "target", "auxiliary", "shared")]
        rows.append((label, own[0]["evidence"] or "-", *told, cost(own)))
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
        ("target", "curriculum", "curriculum, random swaps"),
        ("target", "curriculum", "TaskExplore"),
        ("auxiliary", "curriculum", "TaskExplore"),
        ("auxiliary", "curriculum", "curriculum, random swaps"),
        ("auxiliary", "curriculum", "random behaviour"),
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
    parts = []
    for title, full, walls in places:
        listed = arms(scale.steps(full), walls)
        parts.append(Part(title, listed, beside=partial(measured, listed, scale.seeds)))
    return parts


STUDIES = {
    "task-explore": Study(
        "task-explore",
        "Are tasks with similar objects learned at no cost while the target is pursued?",
        "Auxiliary tasks do not hurt the target, their policies are better than those learned from random "
        "behaviour, and they share more of their paths with the target than random ones (Quartey, Shah and "
        "Konidaris, 2023).",
        "The home is ours, with another layout and another target of three objects for each seed. Only names "
        "are embedded, by a sentence encoder (`minilm`, L3). A bag of words finds no two names similar, so "
        "its swaps are the random ones. The order and the length of the curriculum are ours.",
        _parts,
        seeds=8,
    )
}
