"""Study of "In-context Reinforcement Learning with Algorithm Distillation" (Laskin et al., ICLR 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import hunch
from hunch import methods
from hunch.core import FloatArray, State
from hunch.methods.in_context.lifetime import Lifetimes
from hunch.methods.q_learning import QLearningConfig
from hunch.report.curves import draw, within
from hunch.rl import dataset
from hunch.rl.episodes import evaluate
from hunch.rl.rollout import Finished
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig, finished
from hunch.runs.histories import Lives, histories
from hunch.runs.processes import processors
from hunch_studies.study import Part, Scale, Seeded, Study, runs_of

ROOM: Final = "hunch/DarkRoom-v0"
EPISODES: Final = 16
"""Episodes of a lifetime."""
LIFETIMES: Final = 48
"""Lifetimes per evaluation."""
SOURCE: Final = QLearningConfig(epsilon=(1.0, 0.02, 3_000), gamma=0.9)
"""The learner whose lives are read."""
LIVES: Final[Mapping[str, Lives]] = {
    "lives": Lives(tasks=100, copies=2, episodes=400, every=20),
    "ends": Lives(tasks=100, copies=2, episodes=400, every=1, skip=400 - EPISODES),
}
"""What is recorded of the same learners: whole lives, one episode in 20, and only their last episodes."""
DISTILLATION: Final[Mapping[str, Mapping[str, Any]]] = {
    "algorithm distillation": {},
    "expert distillation": {"kind": "ends"},
    "shuffled order": {"histories": "shuffled"},
    "pretrained by the best actions": {"histories": "shuffled", "labels": "best"},
}
UPDATES: Final = 1_600


class Sweep(Lifetimes):
    """A rule of a programmer: look at every cell once, then go back to the one that paid, and stay.

    Args:
        seed: Not used.
        size: Rows of the room.
    """

    def __init__(self, seed: int, size: int = 7) -> None:
        super().__init__(seed)
        self.cells = [
            (r, c if r % 2 else size + 1 - c) for r in range(1, size + 1) for c in range(1, size + 1)
        ]

    def act(self, states: Sequence[State]) -> list[str]:
        """Move towards the cell that paid, or the nearest one that was not seen yet."""
        return [self._move(state) for state in states]

    def _move(self, state: State) -> str:
        lived = self.lived.get(state.stream, [])
        here = _cell(state.observation)
        texts = [*(step.observation for step in lived[1:]), state.observation]
        paid = [
            _cell(text) for step, text in zip(lived, texts, strict=False) if step.reward and not step.last
        ]
        seen = {_cell(step.observation) for step in lived} | {here}
        unseen = [cell for cell in self.cells if cell not in seen] or [here]
        target = (
            paid[-1]
            if paid
            else min(unseen, key=lambda cell: abs(cell[0] - here[0]) + abs(cell[1] - here[1]))
        )
        down, right = target[0] - here[0], target[1] - here[1]
        if down:
            return "go down" if down > 0 else "go up"
        return "stay" if not right else "go right" if right > 0 else "go left"


def _cell(text: str) -> tuple[int, int]:
    row, column = (int("".join(filter(str.isdigit, part))) for part in text.split(","))
    return row, column


def test_rooms(seed: int) -> dict[str, Any]:
    """Return the options of the rooms whose goals a seed holds out."""
    return {"goals": "test", "split_seed": seed}


def lives_of(data: Path, kind: str, seed: int) -> Path:
    """Return the folder of the recorded lives of a seed."""
    return data / f"{kind}-{seed}"


def record(data: Path, seeds: int, lives: Mapping[str, Lives]) -> None:
    """Record the source learner's lives on the goals of training, for each seed, unless they are there."""
    for seed, kind in ((seed, kind) for seed in range(seeds) for kind in lives):
        if not (lives_of(data, kind, seed) / "metadata.json").exists():
            options = {"goals": "train", "split_seed": seed}
            source = RunConfig(method="q-learning", env=ROOM, env_options=options, options=SOURCE, seed=seed)
            dataset.save(histories(source, lives[kind], processors()), lives_of(data, kind, seed))


def arm(
    label: str, method: str, data: Path, steps: int, lifetimes: int, kind: str = "lives", **options: Any
) -> Seeded:
    """Return a method that reads the lives of its seed, judged on the goals that the seed holds out."""
    config = RunConfig(
        method=method,
        env=ROOM,
        data=str(lives_of(data, kind, 0)),
        steps=steps,
        lifetime=EPISODES,
        envs=lifetimes,
        eval_every=steps,
        eval_episodes=lifetimes * EPISODES,
        options=methods.find(method).config_class(**options),
    )
    return Seeded(label, config, partial(of_seed, data, kind))


def of_seed(data: Path, kind: str, seed: int) -> dict[str, Any]:
    """Return the settings of a seed: its lives, and the rooms that it holds out."""
    return {"data": str(lives_of(data, kind, seed)), "env_options": test_rooms(seed)}


class Random(Lifetimes):
    """Random play."""

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action for each state."""
        return [state.options[int(self.rng.integers(len(state.options)))] for state in states]


def references(seed: int, lifetimes: int) -> dict[str, FloatArray]:
    """Return the mean return by episode of the learner, a rule and random play on a seed's held-out goals."""
    options, found = test_rooms(seed), dict[str, FloatArray]()
    source = RunConfig(method="q-learning", env=ROOM, env_options=options, options=SOURCE, seed=seed)
    lived = histories(source, Lives(tasks=lifetimes, copies=1, episodes=EPISODES, every=1))
    found["the learner itself"] = by_episode([(e.number, sum(e.rewards)) for e in lived.episodes])
    for label, player in (("a programmer's rule", Sweep), ("random play", Random)):
        envs = [hunch.make(ROOM, **options) for _ in range(lifetimes)]
        played = evaluate(player, envs, lifetimes * EPISODES, seed, lifetime=EPISODES)
        found[label] = by_episode([(e.number, e.episode_return) for e in played])
    return found


def by_episode(played: Sequence[tuple[int, float]]) -> FloatArray:
    """Return the mean return of each episode of a lifetime, shape (EPISODES,)."""
    return np.array([np.mean([r for n, r in played if n % EPISODES == i]) for i in range(EPISODES)])


def goals_reached(seed: int, played: Sequence[Finished]) -> float:
    """Return the share of goals whose last three episodes have half of the best return, in the mean."""
    best, last = dict[Any, float](), dict[Any, list[float]]()
    env = hunch.make(ROOM, **test_rooms(seed))
    for episode in played:
        if episode.number % EPISODES >= EPISODES - 3:
            env.reset(seed=0, options={"task_seed": episode.task_seed})
            way: tuple[str, ...] = env.unwrapped.oracle()  # type: ignore[attr-defined]
            best[way] = 1.0 + way.count("stay")  # each goal has its own way; its last move pays, too
            last.setdefault(way, []).append(episode.episode_return)
    return float(np.mean([np.mean(own) >= best[way] / 2 for way, own in last.items()]))


def measured(lifetimes: int, arms: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return the table of returns within a lifetime, and draw them."""
    curves: dict[str, list[FloatArray]] = {}
    reached: dict[str, list[float]] = {}
    panel: dict[Arm, list[Any]] = {}
    for each in arms:
        for seed, run in enumerate(runs_of(each, seeds, folder)):
            result = finished(run)
            assert result is not None
            points = within(result, EPISODES)
            panel.setdefault(each, []).append(points)
            curves.setdefault(each.label, []).append(points["return"])
            reached.setdefault(each.label, []).append(goals_reached(seed, result.evaluations))
    for seed in range(seeds):
        for label, curve in references(seed, lifetimes).items():
            curves.setdefault(label, []).append(curve)
    draw({"Return within a lifetime, held-out goals": panel}, folder / "lifetimes.png", "return", "episode")
    lines = [
        "| arm | first episode | last three | gain | lead of the first arm | goals reached |",
        "|---|---|---|---|---|---|",
    ]
    ours = [float(own[-3:].mean()) for own in next(iter(curves.values()))]
    for label, own in curves.items():
        first, last = [float(c[0]) for c in own], [float(c[-3:].mean()) for c in own]
        gain = over_pairs(np.subtract(last, first).tolist())
        lead = "-" if last == ours else str(over_pairs(np.subtract(ours, last).tolist()))
        share = f"{np.mean(reached[label]):.2f}" if label in reached else "-"
        lines.append(f"| {label} | {over_seeds(first)} | {over_seeds(last)} | {gain} | {lead} | {share} |")
    return "\n".join([*lines, "", "![Return within a lifetime](lifetimes.png)"])


def _parts(scale: Scale, data: Path) -> list[Part]:
    lifetimes = LIFETIMES if not scale.smoke else 4
    short = {
        "lives": Lives(tasks=6, copies=2, episodes=32, every=2),
        "ends": Lives(tasks=6, copies=2, episodes=32, every=1, skip=16),
    }
    lives = short if scale.smoke else LIVES
    updates = 10 if scale.smoke else scale.steps(UPDATES)
    arms = [
        arm(label, "algorithm-distillation", data, updates, lifetimes, **options)
        for label, options in DISTILLATION.items()
    ]
    return [
        Part(
            "DarkRoom",
            (*arms, arm("look-up", "nearest-history", data, updates, lifetimes)),
            prepare=partial(record, data, scale.seeds, lives),
            measure=partial(measured, lifetimes),
        )
    ]


STUDIES = {
    "in-context": Study(
        "in-context",
        "Does a frozen network that has read how learners improve get better within a lifetime?",
        "Laskin et al., figure 4: Algorithm Distillation improves within its context in held-out dark rooms, "
        "faster than its source; expert distillation does not improve.",
        "A room of 7 x 7 cells in words, 15 steps per episode, 36 goals of training and 12 held out; "
        f"170,000 weights and {UPDATES:,} updates. Each seed has its own split, lives and network.",
        _parts,
        seeds=5,
    ),
}
