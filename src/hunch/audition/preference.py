"""The preference judge: does the model say which of two captions shows more progress?

Prompt and reader are those of Motif (:class:`hunch.methods.reward.motif.Preference`). The truth is how many
steps the solver needs afterwards. Each pair is shown in both orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hunch.audition.question import Bed, Moment, Role, Scores, moments
from hunch.core import World
from hunch.lm import load
from hunch.lm.backends.bag_of_words import words
from hunch.lm.base import LanguageModel
from hunch.methods.reward.motif import Preference, PreferenceConfig

BEDS = (
    Bed("hunch/Household-Pick-v0", {"games": 40}, "pool_seed"),
    Bed("hunch/Ferry-v0"),
    Bed("hunch/Blocksworld-v0"),
)
PER_EPISODE = 4


class Compared(NamedTuple):
    """Two captions of one episode; the first shows more progress, by ``distance`` steps."""

    task: str
    better: str
    worse: str
    distance: int
    episode: int


def pairs(bed: Bed, n: int, seed: int) -> list[Compared]:
    """Draw pairs of captions of one episode that differ in text and progress: n questions in two orders."""
    rng = np.random.default_rng(seed)
    episodes: dict[int, list[Moment]] = {}
    for moment in moments(bed, 8 * n, seed, skill=0.7, each=50):
        episodes.setdefault(moment.episode, []).append(moment)
    found: list[Compared] = []
    for own in episodes.values():
        found += _of_one(own, rng)
    return [found[i] for i in sorted(rng.permutation(len(found))[: -(-n // 2)])]


def _of_one(own: Sequence[Moment], rng: np.random.Generator) -> list[Compared]:
    """Pairs of an episode: what was left after each step is what was left before the next one."""
    told = [(m.step.event, after.left) for m, after in pairwise(own) if m.step.event]
    found = []
    for _ in range(PER_EPISODE if len(told) > 1 else 0):
        (one, left), (other, right) = (told[i] for i in rng.permutation(len(told))[:2])
        if one != other and left != right:
            better, worse = (one, other) if left < right else (other, one)
            found.append(Compared(own[0].state.task, better, worse, abs(left - right), own[0].episode))
    return found


def verdicts(lm: LanguageModel, drawn: Sequence[Compared], seed: int) -> Scores:
    """Return the score of each pair: the share of the two orders in which the better caption was named.

    A tie or no answer counts as half in its order.
    """
    asked = Preference(lm, load("bag-of-words"), PreferenceConfig(patience=None))
    forward, backward = [], []
    for task in dict.fromkeys(pair.task for pair in drawn):
        asked.begin(World(task=task, steps=10**9), seed)
        own = [(i, p) for i, p in enumerate(drawn) if p.task == task]
        forward += _points(asked, [(i, p.better, p.worse) for i, p in own], right=1)
        backward += _points(asked, [(i, p.worse, p.better) for i, p in own], right=2)
    ahead, behind = (np.array([s for _, s in sorted(told)]) for told in (forward, backward))
    values = (ahead + behind) / 2
    far = np.array([p.distance for p in drawn]) > np.median([p.distance for p in drawn])
    both = (ahead == 0) & (behind == 0)
    return Scores(
        values,
        [p.episode for p in drawn],
        {
            "far pairs": float(values[far].mean()) if far.any() else float("nan"),
            "near pairs": float(values[~far].mean()),
            "undecided": float(np.mean(np.concatenate([ahead, behind]) == 0.5)),
            "first position": float(np.mean(np.concatenate([ahead, 1 - behind]))),
            "lasting errors": float(both.sum() / max(1, ((ahead == 0) | (behind == 0)).sum())),
        },
        each=2,
    )


def _points(asked: Preference, shown: Sequence[tuple[int, str, str]], right: int) -> list[tuple[int, float]]:
    """Ask about pairs in one order; 1 for the right verdict, a half for none."""
    told = asked.judged([(one, other) for _, one, other in shown])
    return [
        (i, 0.5 if pair.verdict == 0 else float(pair.verdict == right))
        for (i, _, _), pair in zip(shown, told, strict=True)
    ]


def by_words(drawn: Sequence[Compared], seed: int) -> Scores:
    """Prefer the caption that shares more words with the task."""
    lead = [_shared(p.task, p.better) - _shared(p.task, p.worse) for p in drawn]
    return Scores((np.sign(lead) + 1) / 2, [p.episode for p in drawn])


def _shared(task: str, caption: str) -> int:
    return len(set(words(task)) & set(words(caption)))


PREFERENCE = Role(
    "preference",
    "share of pairs of captions in which the one with more progress is preferred",
    ("generate",),
    BEDS,
    pairs,
    verdicts,
    by_words,
)
