"""SPRING: the effect of a graph of questions on errors, compared with asking for the action directly.

hunch study spring
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from hunch.core import Player, State, Transition, World
from hunch.envs import make
from hunch.lm import load
from hunch.methods import find
from hunch.rl.episodes import evaluate
from hunch.rl.statistics import Estimate, over_pairs, over_seeds
from hunch_contrib.planner.spring import GRAPH, SPRING, Question
from hunch_studies.plan4mc import TARGETS
from hunch_studies.planners import table
from hunch_studies.study import Part, Scale, Study, kept

ID: Final = "hunch/Craft-v0"
WORLD: Final[dict[str, Any]] = {"difficulty": "hard", "most": 9, "max_steps": 150}
RULE: Final = "scripted:player"
ERRORS: Final = (0.0, 0.05, 0.1, 0.2, 0.3)
Asked = Literal["graph", "unchecked", "direct"]
UNCHECKED: Final[Mapping[str, Question]] = {
    "tasks": replace(GRAPH["tasks"], after=()),
    "first": GRAPH["first"],
    "actions": GRAPH["actions"],
    "choice": replace(GRAPH["choice"], after=("actions",)),
}
"""The graph without the five questions about things, requirements and the last action."""


class Judged(Player):
    """A player with the share of its actions that agree with the rule without errors, which sees the same.

    Args:
        player: The player that acts.
        rule: The rule without errors, asked directly.
    """

    def __init__(self, player: Player, rule: Player) -> None:
        self.player, self.rule = player, rule
        self.right: list[bool] = []

    def act(self, states: Sequence[State]) -> list[str]:
        """Return the player's actions."""
        chosen = self.player.act(states)
        self.right += [own == best for own, best in zip(chosen, self.rule.act(states), strict=True)]
        return chosen

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Let both observe the transitions."""
        self.player.observe(transitions)
        self.rule.observe(transitions)


def spring(lm: str, asked: Asked) -> Callable[[World, int], Player]:
    """Make SPRING with a model and sampled answers."""
    own = UNCHECKED if asked == "unchecked" else None
    ask: Literal["graph", "direct"] = "direct" if asked == "direct" else "graph"
    agent = SPRING(load(lm), questions=own, ask=ask, temperature=1.0)

    def player(world: World, seed: int) -> Player:
        agent.begin(world, seed)
        return agent.player(seed)

    return player


def likeness(lm: str) -> Callable[[World, int], Player]:
    """Make a player that ranks actions by an encoder's similarity to the task and the observations."""
    method = find("zero-shot")

    def player(world: World, seed: int) -> Player:
        agent = method.build(method.config_class(), {"lm": load(lm)})
        agent.begin(world, seed)
        return agent.player(seed)

    return player


def play(player: Callable[[World, int], Player], seed: int, targets: Sequence[str]) -> dict[str, float]:
    """Play an episode of every target in the world of a seed; return success, steps and right actions."""
    won, steps, right = [], [], list[bool]()
    for number, target in enumerate(targets):
        env: Any = make(ID, **WORLD, world_seed=seed, target=target)
        world = World(env=ID, task=target, manual=env.unwrapped.manual)
        mine = Judged(player(world, 1_000 * seed + number), spring(RULE, "direct")(world, seed))
        (episode,) = evaluate(lambda _, mine=mine: mine, [env], 1, 1_000 * seed + number)  # type: ignore[misc]
        won.append(episode.success)
        steps.append(episode.length)
        right += mine.right
    return {"success": float(np.mean(won)), "steps": float(np.mean(steps)), "right": float(np.mean(right))}


class Bench:
    """Plays the rows of a table in the worlds of all seeds, and keeps the results.

    Args:
        folder: Folder of the results.
        scale: Size of the study.
    """

    def __init__(self, folder: Path, scale: Scale) -> None:
        self.folder, self.scale = folder, scale

    def played(self, label: str, player: Callable[[World, int], Player]) -> list[dict[str, Any]]:
        """Return the results of a row, seed by seed."""
        targets = TARGETS[: self.scale.episodes(len(TARGETS))]
        keys = [(label, seed) for seed in range(self.scale.seeds)]
        return kept(self.folder / "rows.jsonl", keys, lambda _, seed: play(player, seed, targets))


def _mean(runs: Sequence[dict[str, float]], name: str) -> Estimate:
    return over_seeds([run[name] for run in runs])


LINES: Final[dict[str, tuple[Asked, int]]] = {
    "graph": ("graph", 1),
    "graph without checks": ("unchecked", 1),
    "direct": ("direct", 1),
    "direct, three thoughts": ("direct", 3),
    "direct, nine thoughts": ("direct", 9),
}
"""The arms, each with its questions, and the number of errors to which a direct answer is exposed."""


def by_error(scale: Scale, folder: Path) -> str:
    """Return success and right actions by the share of wrong lines, and the graph's lead over each arm."""
    bench = Bench(folder, scale)
    runs = {
        (label, p): bench.played(f"{label} {p}", spring(f"{RULE}?error={p}&compound={n}", asked))
        for label, (asked, n) in LINES.items()
        for p in ERRORS
    }
    told = " | ".join(f"p = {p}" for p in ERRORS)
    won = [(label, *(_mean(runs[label, p], "success") for p in ERRORS)) for label in LINES]
    right = [(label, *(f"{_mean(runs[label, p], 'right').value:.2f}" for p in ERRORS)) for label in LINES]
    ahead = [(label, *(_ahead(runs["graph", p], runs[label, p]) for p in ERRORS)) for label in LINES]
    return "\n\n".join(
        [
            table(f"success | {told}", won),
            "Success of the graph minus that of the arm, seed by seed:",
            table(f"graph less | {told}", ahead[1:]),
            "Share of actions that agree with the rule without errors:",
            table(f"right actions | {told}", right),
        ]
    )


def _ahead(ours: Sequence[dict[str, float]], other: Sequence[dict[str, float]]) -> Estimate:
    return over_pairs([a["success"] - b["success"] for a, b in zip(ours, other, strict=True)])


def controls(models: Sequence[str], scale: Scale, folder: Path) -> str:
    """Return controls without reasoning (random answers, words, similarity), and the user's models."""
    bench, rows = Bench(folder, scale), []
    both: tuple[Asked, ...] = ("graph", "direct")
    lines: dict[str, tuple[str, Callable[[World, int], Player]]] = {
        "graph, answers at random": ("uniform", spring("uniform", "graph")),
        "direct, most words of the task": ("scripted:overlap", spring("scripted:overlap", "direct")),
        **{f"likeness, {lm}": (lm, likeness(lm)) for lm in ("bag-of-words", "minilm")},
        **{f"{asked}, {lm}": (lm, spring(lm, asked)) for lm in models for asked in both},
    }
    for label, (lm, player) in lines.items():
        runs = bench.played(label, player)
        rows.append((label, load(lm).evidence, _mean(runs, "success"), f"{_mean(runs, 'steps').value:.0f}"))
    return table("arm | evidence | success | steps per episode", rows)


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [
        Part("By the share of wrong answers", (), beside=partial(by_error, scale)),
        Part("Without reasoning", (), beside=partial(controls, scale.lms, scale)),
    ]


STUDIES = {
    "spring": Study(
        "spring",
        "Does a graph of questions correct more wrong answers than it adds?",
        "With GPT-4 SPRING scores 27.3 % on Crafter, above agents that were trained for a million steps; its "
        "authors credit consistent chains of thought (Wu et al., NeurIPS 2023).",
        "A craft world with one target per episode instead of Crafter, and a rule that answers from the "
        "manual (L0). The error rate of an answer is our assumption, and it decides the comparison: see "
        "above.",
        _parts,
        lm_for="spring",
        seeds=5,
    )
}
