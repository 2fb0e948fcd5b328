"""The goal source: can the goals that the model suggests be reached, and are they useful?

Prompts and readers are those of ELLM (:class:`hunch.roles.goal.suggestions.Suggestions`). A suggestion is
right if it has an effect in this state and serves an achievement; actions without use are not right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from hunch.audition.question import USUAL, Bed, Manner, Role, Scores
from hunch.core import State, UsageError, World
from hunch.envs.craft import PASTIMES, Craft
from hunch.lm.base import LanguageModel
from hunch.lm.ways import Way
from hunch.rl.episodes import play
from hunch.rl.rollout import TextEnvironment, episode_seed
from hunch.roles.goal.suggestions import GoalWay, SuggestionConfig, Suggestions

APPROVING: Final[tuple[GoalWay, ...]] = ("decision", "structured", "label", "likelihood")
"""The ways of asking for a yes or no to each candidate."""
WAYS: Final[tuple[Way, ...]] = ("decision", "structured", "label", "similarity", "likelihood", "text")
"""The ways of asking for goals; text writes a list of them."""
BEDS = (Bed("hunch/Craft-v0", {}, "world_seed"),)
EACH = 5
"""Number of states drawn per episode."""
STEPS = 40
Offered: TypeAlias = tuple[State, frozenset[str], int]
"""A state, the goals that count as right in it, and the number of the episode."""


def suggestions(lm: LanguageModel, drawn: Sequence[Offered], seed: int, manner: Manner = USUAL) -> Scores:
    """Return for each state the share of suggested goals that are right; 0 if there are none."""
    source = Suggestions(lm, settings_of(manner))
    source.begin(World(), seed)
    suggested = source.suggest([state for state, _, _ in drawn])
    right = [
        float(np.mean([goal in good for goal in goals])) if goals else 0.0
        for goals, (_, good, _) in zip(suggested, drawn, strict=True)
    ]
    named = [len(goals) for goals in suggested]
    reach = [len(set(goals) & good) / len(good) for goals, (_, good, _) in zip(suggested, drawn, strict=True)]
    return Scores(
        np.array(right),
        [episode for _, _, episode in drawn],
        {"goals per state": float(np.mean(named)), "useful goals named": float(np.mean(reach))},
        # Answers of one word, yes or no, may approve of nothing; a list without a candidate is unreadable.
        unread=float(np.mean([not goals for goals in suggested])) if source.how == "list" else 0.0,
    )


def settings_of(manner: Manner) -> SuggestionConfig:
    """Return how a goal source asks: for a list, by similarity, or for a yes to each candidate.

    Raises:
        UsageError: if a goal source cannot be asked in this way.
    """
    objective = "" if manner.blank else SuggestionConfig.objective
    asked = SuggestionConfig(objective=objective, max_tokens=manner.max_tokens, patience=None)
    if manner.way == "auto":
        return asked
    if manner.way == "text":
        return replace(asked, how="list")
    if manner.way == "similarity":
        if manner.blank:
            raise UsageError(
                "Goals by similarity are near to what is seen: there is no objective to leave out."
            )
        return replace(asked, how="alike")
    for way in APPROVING:
        if way == manner.way:
            return replace(asked, how="ask", way=way)
    raise UsageError(f"Goals are asked for by {', '.join(WAYS)}, not {manner.way!r}.")


def states(bed: Bed, n: int, seed: int) -> list[Offered]:
    """Draw states from episodes in which about half of the actions have a useful effect."""
    env, rng = bed.make(seed), np.random.default_rng(seed)
    offered: list[Offered] = []
    for episode in range(n):
        seen = list(_walk(env, rng, episode_seed(seed, 3, episode)))
        offered += [(*seen[i], episode) for i in sorted(rng.permutation(len(seen))[:EACH])]
        if len(offered) >= n:
            break
    return offered[:n]


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
    ways=WAYS,
    blank="that goals should be sensible and useful",
)
