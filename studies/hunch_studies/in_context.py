"""Study of "In-context Reinforcement Learning with Algorithm Distillation" (Laskin et al., ICLR 2023).

    hunch study in-context
    python -m hunch_studies.in_context docs/assets/studies/in_context.json --bed DarkRoom   # minutes

The second command plays anew what needs no network: the learner, rules and random play. It holds the recorded
returns of the networks against it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import hunch
from hunch import methods
from hunch.core import FloatArray
from hunch.methods.in_context.lifetime import Lifetimes
from hunch.methods.q_learning import QLearningConfig
from hunch.report.curves import draw, within
from hunch.rl import dataset
from hunch.rl.episodes import evaluate
from hunch.rl.rollout import Finished
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.files import write_atomically
from hunch.runs.histories import Lives, histories
from hunch.runs.processes import processors
from hunch.runs.stored import finished
from hunch_studies.in_context_rules import UCB, Random, Sweep, SweepTwice, Thompson
from hunch_studies.study import Part, Scale, Seeded, Study, runs_of

Rule = Callable[[int], Lifetimes]
Tasks = Callable[[int, bool], dict[str, Any]]
LIFETIMES: Final = 48
"""Lifetimes per evaluation."""
UPDATES: Final = 800
DISTILLATION: Final[Mapping[str, Mapping[str, Any]]] = {
    "algorithm distillation": {},
    "expert distillation": {"kind": 1},
    "shuffled order": {"histories": "shuffled"},
}
PRETRAINED: Final[Mapping[str, Mapping[str, Any]]] = {
    "decision-pretrained": {},
    "decision-pretrained, other tasks' labels": {"labels": "shuffled"},
}
"""Only where the observation says which action is best once the task is known: in rooms without a key."""
LONGER: Final = 4
"""The Decision-Pretrained Transformer is also trained with so many times the updates."""
SOURCE: Final = "the source in its first episodes"
LEARNER: Final = "the learner, exploring within a lifetime"
EXPLORING: Final = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Shares of a lifetime in which the learner may explore."""


@dataclass(frozen=True)
class Bed:
    """An environment, the learner whose lives are read in it, and what it is compared with."""

    title: str
    env: str
    tasks: Tasks
    """Options of the environment for a seed, for held-out tasks or those of training."""
    source: QLearningConfig
    lives: Mapping[str, Lives]
    """What is recorded of the same learners, by folder: parts of whole lives, and only their ends."""
    episodes: int
    """Episodes of a lifetime."""
    length: int
    """Maximum number of steps of an episode."""
    rules: Mapping[str, Rule]
    best: Callable[[Sequence[str]], float]
    """Called with the best actions of an episode; returns its return."""
    most: int = 0
    """Maximum number of seeds; 0 for no maximum."""

    def learner(self, seed: int, held_out: bool) -> RunConfig:
        """Return the settings of the learner."""
        options = self.tasks(seed, held_out)
        return RunConfig(
            method="q-learning", env=self.env, env_options=options, options=self.source, seed=seed
        )


def rooms(seed: int, held_out: bool) -> dict[str, Any]:
    """Return the options of the dark rooms of a seed."""
    return {"goals": "test" if held_out else "train", "split_seed": seed}


def doors(seed: int, held_out: bool) -> dict[str, Any]:
    """Return the options of the rooms with a key; the learner's state includes the step before."""
    return {**rooms(seed, held_out), "size": 5, "length": 20, "history": 1}


def bandits(seed: int, held_out: bool) -> dict[str, Any]:
    """Return the options of the bandits: the arms that are good in tests never are in training."""
    return {"rewarding": "even" if held_out else "odd", "length": 10}


BEDS: Final = (
    Bed(
        "DarkRoom",
        "hunch/DarkRoom-v0",
        rooms,
        QLearningConfig(epsilon=(1.0, 0.02, 3_000), gamma=0.9),
        {
            "lives": Lives(tasks=100, copies=2, episodes=400, every=20),
            "ends": Lives(tasks=100, copies=2, episodes=400, every=1, skip=384),
        },
        16,
        15,
        {"a programmer's rule": Sweep},
        lambda way: 1.0 + way.count("stay"),  # the last move to the goal pays, too
    ),
    Bed(
        "Bandit",
        "hunch/Bandit-v0",
        bandits,
        QLearningConfig(epsilon=(1.0, 0.05, 60), gamma=0.0),
        {
            "pulls": Lives(tasks=300, copies=1, episodes=10, every=1),
            "last-pulls": Lives(tasks=300, copies=1, episodes=20, every=1, skip=10),
        },
        10,
        10,
        {"UCB": UCB, "Thompson sampling": Thompson},
        lambda way: 0.8 * len(way),
    ),
    Bed(
        "DarkKeyToDoor",
        "hunch/DarkKeyToDoor-v0",
        doors,
        QLearningConfig(epsilon=(1.0, 0.02, 8_000), gamma=0.9),
        {
            "door-lives": Lives(tasks=200, copies=1, episodes=960, every=60),
            "door-ends": Lives(tasks=200, copies=1, episodes=960, every=1, skip=944),
        },
        16,
        20,
        {"a programmer's rule": SweepTwice},
        lambda way: 2.0,
        most=3,
    ),
)


def record(bed: Bed, data: Path, seeds: int) -> None:
    """Record the source learner's lives on the tasks of training, for each seed, unless they are there."""
    for seed, kind in ((seed, kind) for seed in range(seeds) for kind in bed.lives):
        if not (data / f"{kind}-{seed}" / "metadata.json").exists():
            found = histories(bed.learner(seed, False), bed.lives[kind], processors())
            dataset.save(found, data / f"{kind}-{seed}")


def arm(
    bed: Bed, label: str, method: str, data: Path, steps: int, lifetimes: int, kind: int = 0, **options: Any
) -> Seeded:
    """Return a method that reads the lives of its seed, judged on the tasks that the seed holds out."""
    folder = list(bed.lives)[kind]
    if method == "algorithm-distillation":
        options["episodes"] = bed.episodes
    config = RunConfig(
        method=method,
        env=bed.env,
        data=str(data / f"{folder}-0"),
        steps=steps,
        lifetime=bed.episodes,
        envs=lifetimes,
        eval_every=steps,
        eval_episodes=lifetimes * bed.episodes,
        options=methods.find(method).config_class(**options),
    )
    return Seeded(label, config, partial(of_seed, bed.tasks, data, folder))


def of_seed(tasks: Tasks, data: Path, folder: str, seed: int) -> dict[str, Any]:
    """Return the settings of a seed: its lives, and the tasks that it holds out."""
    return {"data": str(data / f"{folder}-{seed}"), "env_options": tasks(seed, True)}


def references(bed: Bed, seed: int, lifetimes: int) -> dict[str, FloatArray]:
    """Return the mean return by episode of the learner, rules and random play on a seed's held-out tasks.

    The source learns for many lifetimes, so that it still explores at the end of the first. What a network
    does in one lifetime is held against the same learner that explores in a part of it.
    """
    found, n = dict[str, FloatArray](), bed.episodes
    found[SOURCE] = learnt(bed, bed.source, seed, True, lifetimes)
    found[LEARNER] = learnt(bed, within_a_lifetime(bed, seed, lifetimes), seed, True, lifetimes)
    for label, player in {**bed.rules, "random play": Random}.items():
        envs = [hunch.make(bed.env, **bed.tasks(seed, True)) for _ in range(lifetimes)]
        played = evaluate(player, envs, lifetimes * n, seed, lifetime=n)
        found[label] = by_episode([(e.number, e.episode_return) for e in played], n)
    return found


def within_a_lifetime(bed: Bed, seed: int, lifetimes: int) -> QLearningConfig:
    """Return the source with the exploration that has the best last episodes on the tasks of training."""
    first, last, _ = bed.source.epsilon
    steps = bed.episodes * bed.length
    scheduled = [replace(bed.source, epsilon=(first, last, round(share * steps))) for share in EXPLORING]
    return max(scheduled, key=lambda config: learnt(bed, config, seed, False, lifetimes)[-3:].mean())


def learnt(bed: Bed, source: QLearningConfig, seed: int, held_out: bool, lifetimes: int) -> FloatArray:
    """Return the mean return of each episode of a learner's lifetimes, shape (episodes,)."""
    config = replace(bed.learner(seed, held_out), options=source)
    lived = histories(config, Lives(tasks=lifetimes, copies=1, episodes=bed.episodes, every=1))
    return by_episode([(e.number, sum(e.rewards)) for e in lived.episodes], bed.episodes)


def by_episode(played: Sequence[tuple[int, float]], episodes: int) -> FloatArray:
    """Return the mean return of each episode of a lifetime, shape (episodes,)."""
    return np.array([np.mean([r for n, r in played if n % episodes == i]) for i in range(episodes)])


def tasks_solved(bed: Bed, seed: int, played: Sequence[Finished]) -> float:
    """Return the share of tasks whose last three episodes have half of the best return, in the mean."""
    best, last = dict[Any, float](), dict[Any, list[float]]()
    env = hunch.make(bed.env, **bed.tasks(seed, True))
    for episode in played:
        if episode.number % bed.episodes >= bed.episodes - 3:
            env.reset(seed=0, options={"task_seed": episode.task_seed})
            way: tuple[str, ...] = env.unwrapped.oracle()  # type: ignore[attr-defined]
            best[way] = bed.best(way)  # each task has its own way
            last.setdefault(way, []).append(episode.episode_return)
    return float(np.mean([np.mean(own) >= best[way] / 2 for way, own in last.items()]))


def measured(bed: Bed, lifetimes: int, arms: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the table of returns within a lifetime; draw them; write those of each seed to ``rows.json``.

    *Lifetime* is the sum over all episodes: what is missing to that of the best way is the regret.
    """
    curves: dict[str, list[FloatArray]] = {}
    solved: dict[str, list[float]] = {}
    panel: dict[Arm, list[Any]] = {}
    for each in arms:
        for seed, run in enumerate(runs_of(each, seeds, folder)):
            result = finished(run)
            assert result is not None
            points = within(result, bed.episodes)
            panel.setdefault(each, []).append(points)
            curves.setdefault(each.label, []).append(points["return"])
            solved.setdefault(each.label, []).append(tasks_solved(bed, seed, result.evaluations))
    for seed in range(seeds):
        for label, curve in references(bed, seed, lifetimes).items():
            curves.setdefault(label, []).append(curve)
    rows = {label: [curve.round(3).tolist() for curve in own] for label, own in curves.items()}
    write_atomically(folder / "rows.json", json.dumps(rows).encode())
    draw({"Return within a lifetime, held-out tasks": panel}, folder / "lifetimes.png", "return", "episode")
    lines = [
        "| arm | first episode | last three | gain | lead of the first arm | lifetime | solved by half |",
        "|---|---|---|---|---|---|---|",
    ]
    ours = [float(own[-3:].mean()) for own in next(iter(curves.values()))]
    for label, own in curves.items():
        first, last = [float(c[0]) for c in own], [float(c[-3:].mean()) for c in own]
        gain = over_pairs(np.subtract(last, first).tolist())
        lead = "-" if last == ours else str(over_pairs(np.subtract(ours, last).tolist()))
        share = f"{np.mean(solved[label]):.2f}" if label in solved else "-"
        whole = over_seeds([float(c.sum()) for c in own])
        lines.append(
            f"| {label} | {over_seeds(first)} | {over_seeds(last)} | {gain} | {lead} | {whole} | {share} |"
        )
    return "\n".join([*lines, "", f"![Return within a lifetime]({folder.name}/lifetimes.png)"])


def short(bed: Bed) -> Bed:
    """Return a bed with short lives, to test that the study works."""
    whole, ends = bed.lives
    n = 2 * bed.episodes
    brief = Lives(tasks=12, copies=1, episodes=n, every=2)
    return replace(bed, lives={whole: brief, ends: replace(brief, every=1, skip=bed.episodes)})


def _parts(scale: Scale, data: Path) -> list[Part]:
    lifetimes = 4 if scale.smoke else LIFETIMES
    updates = 10 if scale.smoke else scale.steps(UPDATES)

    def part(title: str, bed: Bed, arms: Sequence[Arm], most: int) -> Part:
        return Part(
            title,
            tuple(arms),
            prepare=partial(record, bed, data, min(scale.seeds, most or scale.seeds)),
            measure=partial(measured, bed, lifetimes),
            most=most,
        )

    def pretrained(bed: Bed, updates: int) -> list[Arm]:
        steps = bed.episodes * bed.length
        return [
            arm(bed, label, "decision-pretrained", data, updates, lifetimes, transitions=steps, **options)
            for label, options in PRETRAINED.items()
        ]

    beds = [short(bed) if scale.smoke else bed for bed in BEDS]
    dark_room = beds[0]
    parts = []
    for bed in beds:
        arms: list[Arm] = [
            arm(bed, label, "algorithm-distillation", data, updates, lifetimes, **options)
            for label, options in DISTILLATION.items()
        ]
        if bed is dark_room:
            arms += pretrained(bed, updates)
        arms.append(arm(bed, "look-up", "nearest-history", data, updates, lifetimes))
        parts.append(part(bed.title, bed, arms, bed.most))
    title = f"{dark_room.title}, {LONGER} times the updates"
    return [*parts, part(title, dark_room, pretrained(dark_room, LONGER * updates), most=3)]


STUDIES = {
    "in-context": Study(
        "in-context",
        "Does a frozen network that has read how learners improve get better within a lifetime?",
        "Laskin et al., figure 4: Algorithm Distillation improves within its context in held-out dark rooms, "
        "faster than its source; expert distillation does not improve.",
        "Rooms of 7 x 7 cells in words, 15 steps per episode, 36 goals of training and 12 held out; bandits "
        "of 10 arms, of which those that are good in tests never are in training; rooms of 5 x 5 cells with "
        f"a key; 170,000 weights, {UPDATES:,} updates. Each seed has its own split, lives and network.",
        _parts,
        seeds=5,
    ),
}


def held_against(bed: Bed, recorded: Mapping[str, Mapping[str, Sequence[float]]], lifetimes: int) -> str:
    """Return the table of what needs no network, and the leads of recorded networks over it, in Markdown.

    Args:
        bed: The environment.
        recorded: By arm and seed, the mean return of each episode.
        lifetimes: Lifetimes of the references of a seed.
    """
    seeds = sorted({seed for of_arm in recorded.values() for seed in of_arm})
    first: dict[str, list[float]] = {}
    last: dict[str, dict[str, float]] = {}
    for seed in seeds:
        for label, curve in references(bed, int(seed), lifetimes).items():
            first.setdefault(label, []).append(float(curve[0]))
            last.setdefault(label, {})[seed] = float(curve[-3:].mean())
    names = [name for name in recorded if name.partition("-")[0] in ("algorithm", "decision")]
    lines = [
        f"| | first episode | last three of {bed.episodes} | "
        + "".join(f"lead of {name} | " for name in names),
        "|---" * (3 + len(names)) + "|",
    ]
    for label, own in last.items():
        leads = []
        for name in names:
            paired = [float(np.mean(curve[-3:])) - own[seed] for seed, curve in recorded[name].items()]
            leads.append(over_pairs(paired).short())
        cells = [over_seeds(first[label]).short(), over_seeds(list(own.values())).short(), *leads]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table of :func:`held_against`."""
    parser = argparse.ArgumentParser(description="Recorded networks beside learners and rules.")
    parser.add_argument("rows", type=Path)
    parser.add_argument("--bed", choices=[bed.title for bed in BEDS], default=BEDS[0].title)
    parser.add_argument("--lifetimes", type=int, default=LIFETIMES)
    asked = parser.parse_args()
    rows = json.loads(asked.rows.read_text(encoding="utf-8"))
    nested = {"Bandit": "bandit", "DarkKeyToDoor": "door"}
    of_bed = rows[nested[asked.bed]] if asked.bed in nested else rows
    [bed] = [bed for bed in BEDS if bed.title == asked.bed]
    networks = {
        name: own if isinstance(own, dict) else {str(seed): curve for seed, curve in enumerate(own)}
        for name, own in of_bed.items()
        if name not in nested.values()
    }
    print(held_against(bed, networks, asked.lifetimes))


if __name__ == "__main__":
    main()
