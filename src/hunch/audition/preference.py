"""The preference judge: which of two captions, or of two pictures, shows more progress?

Prompts and readers are those of Motif (:class:`hunch.methods.reward.motif.Preference`), and for pictures of
RL-VLM-F (:class:`hunch.roles.reward.picture_judge.PictureJudge`). The truth is the number of remaining steps
afterwards. Each pair is shown in both orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hunch.audition import pictures
from hunch.audition.question import USUAL, Bed, Manner, Moment, NoQuestionError, Role, Scores, moments
from hunch.core import FloatArray, UsageError, World
from hunch.lm import load
from hunch.lm.backends.bag_of_words import words
from hunch.lm.base import LanguageModel, Verb
from hunch.methods.reward.motif import Preference, PreferenceConfig
from hunch.roles.reward.comparer import COMPARING, comparing
from hunch.roles.reward.picture_judge import PictureAsking, PictureJudge

_WRITES = frozenset[Verb]({"generate", "decide"})
BEDS = (
    Bed("hunch/Household-Pick-v0", {"games": 40}, "pool_seed", needs=_WRITES),
    Bed("hunch/Ferry-v0", needs=_WRITES),
    Bed("hunch/Blocksworld-v0", needs=_WRITES),
    pictures.BED,
)
PER_EPISODE = 4


class Compared(NamedTuple):
    """Two captions of one episode, or two pictures; the first shows more progress, by ``distance`` steps."""

    task: str
    better: Any
    worse: Any
    distance: int
    episode: int


def pairs(bed: Bed, n: int, seed: int) -> list[Compared]:
    """Draw pairs of captions of one episode that differ in text and progress: n questions in two orders.

    Raises:
        NoQuestionError: if there are none.
    """
    if bed is pictures.BED:
        return _drawn_pictures(-(-n // 2), seed)
    rng = np.random.default_rng(seed)
    episodes: dict[int, list[Moment]] = {}
    for moment in moments(bed, 8 * n, seed, skill=0.7, each=50):
        episodes.setdefault(moment.episode, []).append(moment)
    possible: list[Compared] = []
    for episode in episodes.values():
        possible += _of_episode(episode, rng)
    if not possible:
        raise NoQuestionError("No two captions of an episode differ in text and progress.")
    chosen = rng.permutation(len(possible))[: -(-n // 2)]
    return [possible[i] for i in sorted(chosen)]


def _of_episode(episode: Sequence[Moment], rng: np.random.Generator) -> list[Compared]:
    """Pairs of an episode: what was left after each step is what was left before the next one."""
    captions = [(m.step.event, after.left) for m, after in pairwise(episode) if m.step.event]
    task, number = episode[0].state.task, episode[0].episode
    compared = []
    for _ in range(PER_EPISODE if len(captions) > 1 else 0):
        first, second = rng.permutation(len(captions))[:2]
        (one, steps_of_one), (other, steps_of_other) = captions[first], captions[second]
        if one != other and steps_of_one != steps_of_other:
            better, worse = (one, other) if steps_of_one < steps_of_other else (other, one)
            compared.append(Compared(task, better, worse, abs(steps_of_one - steps_of_other), number))
    return compared


def _drawn_pictures(n: int, seed: int) -> list[Compared]:
    known = pictures.stored()
    seen = known.draw(len(known.seen), seed)
    pairs_of_two = zip(seen[::2], seen[1::2], strict=True)
    ordered = [sorted(pair, key=lambda picture: picture.left) for pair in pairs_of_two]
    differ = [(near, far) for near, far in ordered if near.left < far.left]
    return [
        Compared(known.task, near.picture, far.picture, far.left - near.left, i)
        for i, (near, far) in enumerate(differ[:n])
    ]


def verdicts(lm: LanguageModel, drawn: Sequence[Compared], seed: int, manner: Manner = USUAL) -> Scores:
    """Return the score of each pair: the share of the two orders with the right verdict.

    A tie, or no verdict, counts as half.
    """
    pictured = isinstance(drawn[0].better, bytes)
    (ahead, behind), unread = (_of_pictures if pictured else _of_captions)(lm, drawn, seed, manner)
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
        unread=unread / (2 * len(drawn)),
    )


def _of_captions(
    lm: LanguageModel, drawn: Sequence[Compared], seed: int, manner: Manner
) -> tuple[FloatArray, int]:
    """Return for each pair, in two orders, 1 for the right verdict and a half for none, shape (2, n).

    Beside them stands how many answers could not be read.
    """
    config = PreferenceConfig(
        way=comparing(manner.way),
        goal="" if manner.blank else None,
        max_tokens=manner.max_tokens,
        patience=None,
    )
    asked = Preference(lm, load("bag-of-words"), config)
    points = np.zeros((2, len(drawn)))
    unread = 0
    for task in dict.fromkeys(pair.task for pair in drawn):
        asked.begin(World(task=task, steps=10**9), seed)
        places = [i for i, pair in enumerate(drawn) if pair.task == task]
        forward = [(drawn[i].better, drawn[i].worse) for i in places]
        for order, shown in enumerate((forward, [pair[::-1] for pair in forward])):
            points[order, places] = [_point(pair.verdict, order + 1) for pair in asked.judged(shown)]
            unread += asked.unread
    return points, unread


def _of_pictures(
    lm: LanguageModel, drawn: Sequence[Compared], seed: int, manner: Manner
) -> tuple[FloatArray, int]:
    """Return the same for pictures, in which the uninformed stand-in decides by chance."""
    if "see" not in lm.verbs:
        return np.random.default_rng(seed).integers(0, 2, (2, len(drawn))).astype(float), 0
    if manner.blank or manner.way != "auto":
        raise UsageError("Pictures are compared in one way, with the goal.")
    judge, known = PictureJudge(lm, PictureAsking(patience=None)), pictures.stored()
    goal = known.task if judge.writes else known.near
    forward = [(pair.better, pair.worse) for pair in drawn]
    orders = (forward, [pair[::-1] for pair in forward])
    verdicts = [judge.verdicts(goal, shown) for shown in orders]  # by order, for each pair
    points = [
        [_point(verdict or 0, order) for verdict in of_order] for order, of_order in enumerate(verdicts, 1)
    ]
    unread = sum(verdict is None for of_order in verdicts for verdict in of_order)
    return np.array(points), unread


def _point(verdict: float, right: int) -> float:
    return 0.5 if verdict == 0 else float(verdict == right)


def by_words(drawn: Sequence[Compared], seed: int) -> Scores:
    """Return the lexical stand-in's scores: it prefers more words of the task; pictures are a tie."""
    if isinstance(drawn[0].better, bytes):
        return Scores(np.full(len(drawn), 0.5), [p.episode for p in drawn])
    lead = [_shared(p.task, p.better) - _shared(p.task, p.worse) for p in drawn]
    return Scores((np.sign(lead) + 1) / 2, [p.episode for p in drawn])


def _shared(task: str, caption: str) -> int:
    return len(set(words(task)) & set(words(caption)))


PREFERENCE = Role(
    "preference",
    "share of pairs of captions or pictures in which the one with more progress is preferred",
    ("generate", "embed", "decide"),
    BEDS,
    pairs,
    verdicts,
    by_words,
    ways=COMPARING,
    blank="the goal",
)
