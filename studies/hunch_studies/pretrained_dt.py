"""Study of "Can Wikipedia Help Offline Reinforcement Learning?" (Reid et al., 2022), and of its critics.

Wang et al. (ICLR 2024) pretrain on a Markov chain and on independent tokens instead of text. Bodies differ
here by what they were pretrained on, and by nothing else.
"""

from __future__ import annotations

import pydoc_data.topics
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import hunch
from hunch.core import Episode, FloatArray, IntArray, State, Transition
from hunch.rl import dataset
from hunch.rl.cem import CEM
from hunch.rl.recording import Recording
from hunch.rl.rollout import Rollout
from hunch.rl.statistics import over_pairs, over_seeds
from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch.runs.stored import finished
from hunch_studies.study import Part, Scale, Seeded, Study, runs_of

ENV: Final = "hunch/CartPole-v0"
OPTIONS: Final[dict[str, Any]] = {"velocities": False, "max_steps": 200}
ARMS: Final = ("text", "Markov chain", "independent tokens", "shuffled weights", "scratch")
STATES: Final = 100
"""States of the Markov chain, and different independent tokens (Wang et al.)."""
VOCABULARY: Final = 1024
PRETRAINING: Final = 400
"""Updates of the bodies, each on 16 rows of 128 tokens."""
ERRORS: Final = (0.05, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of random actions in recorded episodes, in turn."""
UPDATES: Final = 1_200
EVERY: Final = 50
"""Updates of the Decision Transformer, and between two evaluations."""


# ---- bodies -----------------------------------------------------------------------------------------------


def tokens(kind: str, rng: np.random.Generator) -> tuple[list[str], IntArray]:
    """Return words, and a long row of their numbers: Python's own help, a Markov chain or noise."""
    if kind == "text":
        read = re.findall(r"\w+|[^\w\s]", " ".join(pydoc_data.topics.topics.values()).lower())
        found, counts = np.unique(read, return_counts=True)
        words = [str(word) for word in found[np.argsort(-counts, kind="stable")][: VOCABULARY - 2]]
        number = {word: i for i, word in enumerate(words)}
        return words, np.array([number[word] for word in read if word in number])
    words = [f"w{i}" for i in range(STATES)]
    if kind == "independent tokens":
        return words, rng.integers(STATES, size=200_000)
    chances = rng.dirichlet(np.full(STATES, 0.1), size=STATES).cumsum(1)
    row = [0]
    for chance in rng.random(200_000):
        row.append(int(min(np.searchsorted(chances[row[-1]], chance), STATES - 1)))
    return words, np.array(row)


def body(kind: str, seed: int, updates: int, folder: Path) -> None:
    """Make the body of an arm, unless it is there; all arms of a seed begin with the same weights."""
    if (folder / "config.json").exists():
        return
    import torch

    from hunch.lm.training import Learner  # loads torch
    from hunch.lm.training.words import new  # loads torch

    rng = np.random.default_rng(seed)
    made = new(seed=seed, width=64, layers=3, heads=4, vocabulary=VOCABULARY)
    if kind != "scratch":
        words, row = tokens("text" if kind == "shuffled weights" else kind, rng)
        made.take(words)
        learner = Learner(torch.optim.Adam(made.parameters(), lr=1e-3))
        for _ in range(updates):
            places = rng.integers(len(row) - 128, size=16)[:, None] + np.arange(128)
            read = torch.from_numpy(row[places]) + 2  # after the end, and unknown words
            learner.update(made.network(input_ids=read, labels=read).loss)
    if kind == "shuffled weights":
        order = torch.Generator().manual_seed(seed)
        for weight in made.parameters():
            own = weight.data.flatten()
            weight.data = own[torch.randperm(len(own), generator=order)].view(weight.shape)
    made.save(folder)


# ---- data -------------------------------------------------------------------------------------------------


def policy(seed: int) -> FloatArray:
    """Return a linear policy on the true numbers, shape (5,), by a cross-entropy search."""
    import gymnasium

    env = gymnasium.make("CartPole-v1", max_episode_steps=OPTIONS["max_steps"])

    def survived(weights: FloatArray, start: int) -> int:
        numbers, steps, over = env.reset(seed=start)[0], 0, False
        while not over:
            numbers, _, ended, cut, _ = env.step(int(weights[:4] @ numbers + weights[4] > 0))
            steps, over = steps + 1, ended or cut
        return steps

    def scores(candidates: FloatArray) -> FloatArray:
        return np.array(
            [np.mean([survived(own, 100 * seed + start) for start in range(4)]) for own in candidates]
        )

    search = CEM(population=32, elites=8, generations=8, spread=1.0, noise=0.5)
    return list(search.search(scores, 5, np.random.default_rng(seed)))[-1]


def record(seed: int, episodes: int, folder: Path) -> None:
    """Record episodes of a policy that knows the velocities, as texts that do not tell them."""
    if (folder / "metadata.json").exists():
        return
    env, found, known = hunch.make(ENV, **OPTIONS), list[Recording](), policy(seed)
    rng = np.random.default_rng(seed)
    rollout = Rollout([env], seeds=list(range(seed * 10_000, seed * 10_000 + episodes)), raw=True)
    steps: list[Transition] = []
    while rollout.states:
        error = ERRORS[len(found) % len(ERRORS)]
        steps += rollout.step([choice(state, known, error, rng) for state in rollout.states])
        if steps[-1].done:
            found.append(Recording.of(Episode(tuple(steps), len(found), 0), "linear", -1, 0))
            steps = []
    dataset.save(dataset.Dataset(ENV, OPTIONS, tuple(found), {"policies": "cross-entropy search"}), folder)


def choice(state: State, weights: FloatArray, error: float, rng: np.random.Generator) -> str:
    """Return a policy's action, or in a share of the steps a random one."""
    if rng.random() < error:
        return state.options[int(rng.integers(2))]
    return state.options[int(weights[:4] @ np.asarray(state.raw) + weights[4] > 0)]


def prepare(seeds: int, episodes: int, updates: int, data: Path) -> None:
    """Make data and bodies of all seeds."""
    for seed in range(seeds):
        record(seed, episodes, data / f"episodes-{seed}")
        for kind in ARMS:
            body(kind, seed, updates, data / f"{kind.replace(' ', '-')}-{seed}")


# ---- runs -------------------------------------------------------------------------------------------------


def of_seed(kind: str, data: Path, seed: int) -> dict[str, Any]:
    """Return the settings of a seed: its data and its body."""
    lm = f"hf:{data / kind.replace(' ', '-')}-{seed}"
    return {"data": str(data / f"episodes-{seed}"), "lm": lm}


def until(returns: Sequence[float], goal: float, every: int) -> float:
    """Return the updates until an evaluation has reached a return; all of them if none has."""
    return every * float(next((i for i, r in enumerate(returns, 1) if r >= goal), len(returns)))


def measured(every: int, arms: Sequence[Arm], seeds: int, folder: Path) -> str:
    """Return final returns, and updates to 90 % of the best arm's, paired by seed with the text's."""
    curves: dict[str, list[list[float]]] = {}
    for arm in arms:
        for run in runs_of(arm, seeds, folder):
            result = finished(run)
            assert result is not None
            rounds = sorted({episode.step for episode in result.evaluations})
            own = [[e.episode_return for e in result.evaluations if e.step == step] for step in rounds]
            curves.setdefault(arm.label, []).append([float(np.mean(part)) for part in own])
    best = [max(float(np.mean(own[seed][-2:])) for own in curves.values()) for seed in range(seeds)]
    speed = {
        a: [until(c, 0.9 * b, every) for c, b in zip(own, best, strict=True)] for a, own in curves.items()
    }
    lines = ["| body | last return | updates to 90 % of the best | less the text's |", "|---|---|---|---|"]
    for label, own in curves.items():
        less = over_pairs(np.subtract(speed[label], speed[ARMS[0]]).tolist()) if label != ARMS[0] else "-"
        last = over_seeds([float(np.mean(c[-2:])) for c in own])
        lines.append(f"| {label} | {last} | {over_seeds(speed[label])} | {less} |")
    return "\n".join(lines)


def _parts(scale: Scale, data: Path) -> list[Part]:
    updates, episodes, pretraining = (20, 12, 4) if scale.smoke else (UPDATES, 90, PRETRAINING)
    every = updates // 2 if scale.smoke else EVERY
    config = RunConfig(
        method="decision-transformer",
        env=ENV,
        env_options=OPTIONS,
        steps=updates,
        envs=16,
        eval_every=every,
        eval_episodes=16,
    )
    return [
        Part(
            "CartPole without velocities",
            tuple(Seeded(kind, config, partial(of_seed, kind, data)) for kind in ARMS),
            prepare=partial(prepare, scale.seeds, episodes, pretraining, data),
            measure=partial(measured, every),
        )
    ]


STUDIES = {
    "pretrained-dt": Study(
        "pretrained-dt",
        "Does a Decision Transformer learn faster if its body was pretrained on text?",
        "Reid et al.: a body pretrained on text learns three to six times faster. Wang et al.: one "
        "pretrained on a Markov chain learns at least as fast, so language is not needed.",
        "CartPole in words without velocities; 90 recorded episodes of six qualities; bodies of "
        "150,000 weights and 1,024 words, pretrained with 400 updates.",
        _parts,
        seeds=5,
    ),
}
