"""The goal source: can the goals that the model suggests be reached, and are they useful?

Prompts and readers are those of ELLM (:class:`hunch.methods.goal.ellm.Suggestions`). A suggestion is right if
it has an effect in this state and serves an achievement; actions without use are not right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from hunch.audition.question import Bed, Role, Scores
from hunch.core import State, World
from hunch.envs.craft import PASTIMES, Craft
from hunch.lm.base import LanguageModel
from hunch.methods.goal.ellm import SuggestionConfig, Suggestions
from hunch.rl.episodes import play
from hunch.rl.rollout import TextEnvironment, episode_seed

BEDS = (Bed("hunch/Craft-v0", {}, "world_seed"),)
EACH = 5
"""Number of states drawn per episode."""
STEPS = 40
Offered: TypeAlias = tuple[State, frozenset[str], int]
"""A state, the goals that count as right in it, and the number of the episode."""


def suggestions(lm: LanguageModel, drawn: Sequence[Offered], seed: int) -> Scores:
    """Return for each state the share of suggested goals that are right; 0 if there are none."""
    source = Suggestions(lm, SuggestionConfig(patience=None))
    source.begin(World(), seed)
    found = source.suggest([state for state, _, _ in drawn])
    right = [
        float(np.mean([goal in good for goal in goals])) if goals else 0.0
        for goals, (_, good, _) in zip(found, drawn, strict=True)
    ]
    named = [len(goals) for goals in found]
    reach = [len(set(goals) & good) / len(good) for goals, (_, good, _) in zip(found, drawn, strict=True)]
    return Scores(
        np.array(right),
        [episode for _, _, episode in drawn],
        {"goals per state": float(np.mean(named)), "useful goals named": float(np.mean(reach))},
    )


def states(bed: Bed, n: int, seed: int) -> list[Offered]:
    """Draw states from episodes in which about half of the actions have a useful effect."""
    env, rng = bed.make(seed), np.random.default_rng(seed)
    found: list[Offered] = []
    for episode in range(n):
        seen = list(_walk(env, rng, episode_seed(seed, 3, episode)))
        found += [(*seen[i], episode) for i in sorted(rng.permutation(len(seen))[:EACH])]
        if len(found) >= n:
            break
    return found[:n]


def _walk(
    env: TextEnvironment, rng: np.random.Generator, seed: int
) -> Iterator[tuple[State, frozenset[str]]]:
    known: list[tuple[State, frozenset[str]]] = []

    def act(state: State) -> str:
        good = working(env, state)
        known.append((state, good))
        choices = sorted(good) if good and rng.random() < 0.5 else state.options
        return str(rng.choice(choices))

    for number, _ in enumerate(play(env, act, seed)):
        if known[-1][1]:
            yield known[-1]
        if number >= STEPS:
            break


def working(env: TextEnvironment, state: State) -> frozenset[str]:
    """Return the actions that have an effect now, except pastimes and walking."""
    craft = env.unwrapped
    assert isinstance(craft, Craft)
    return frozenset(
        action for action, rule in craft.rules.items() if action not in PASTIMES and craft.works(rule)
    )


GOAL = Role(
    "goal",
    "share of suggested goals that can be reached at once and are of use",
    ("generate", "embed", "score", "label", "decide"),
    BEDS,
    states,
    suggestions,
)
