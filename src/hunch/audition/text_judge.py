"""The judge of texts: does the model recognise which of two answers follows a principle?

The question is that of ``rlhf --labels judge`` (:class:`hunch.roles.reward.preferences.Judged`), whose
verdicts train a reward model. The pairs are recipes for one request, of which one breaks the diet; the
longer one is right as often as the shorter one. Each is shown in both orders.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Final, NamedTuple

import numpy as np

from hunch.audition.question import USUAL, Bed, Manner, Role, Scores
from hunch.core import State, Transition
from hunch.lm.asking import AskConfig
from hunch.lm.backends.bag_of_words import words
from hunch.lm.base import LanguageModel
from hunch.roles.reward.comparer import COMPARING, comparing
from hunch.roles.reward.preferences import Judged

PRINCIPLE: Final = "Choose the recipe that keeps to the diet."


class Answered(NamedTuple):
    """A request, and two answers to it; the second breaks the diet."""

    request: str
    better: str
    worse: str


def pairs(bed: Bed, n: int, seed: int) -> list[Answered]:
    """Draw stored pairs: n questions in two orders."""
    texts = json.loads((resources.files("hunch.audition") / "texts.json").read_text(encoding="utf-8"))
    order = np.random.default_rng(seed).permutation(len(texts))
    return [Answered(*texts[i]) for i in order[: -(-n // 2)]]


def verdicts(lm: LanguageModel, drawn: Sequence[Answered], seed: int, manner: Manner = USUAL) -> Scores:
    """Return the share of the two orders in which the right answer is preferred; a tie counts half."""
    config = AskConfig(max_tokens=manner.max_tokens, patience=None)
    judge = Judged(lm, ("" if manner.blank else PRINCIPLE,), config, comparing(manner.way))
    forward = [_steps("" if manner.blank else pair.request, pair.better, pair.worse) for pair in drawn]
    backward = [(other, one) for one, other in forward]
    # The preference for the first text, shape (2 orders, pairs): a probability, if the model decides.
    compared: list[list[float]] = []
    unread = 0
    for shown in (forward, backward):
        compared.append(judge.compare(shown, np.random.default_rng(seed)))
        unread += judge.comparer.unread
    preferences = np.array(compared)
    said = (np.sign(preferences - 0.5) + 1) / 2  # the verdict: 1, 0, or a half for a tie
    stated = came = None
    if judge.comparer.decides:  # in the second order, the first text is the wrong one
        stated = preferences.ravel()
        came = np.repeat([1.0, 0.0], len(drawn))
    right = np.stack([said[0], 1 - said[1]])
    both = (right == 0).all(axis=0).sum() / max(1, (right == 0).any(axis=0).sum())
    columns = {
        "undecided": float(np.mean(said == 0.5)),
        "first position": float(said.mean()),
        "lasting errors": float(both),
    }
    episodes = list(range(len(drawn)))
    return Scores(
        right.mean(axis=0),
        episodes,
        columns,
        each=2,
        stated=stated,
        came=came,
        unread=unread / (2 * len(drawn)),
    )


def by_words(drawn: Sequence[Answered], seed: int) -> Scores:
    """Return the scores of the lexical stand-in: the answer with more words of the request."""
    asked = [set(words(pair.request)) for pair in drawn]
    lead = [
        len(wanted & set(words(pair.better))) - len(wanted & set(words(pair.worse)))
        for wanted, pair in zip(asked, drawn, strict=True)
    ]
    return Scores((np.sign(lead) + 1) / 2, list(range(len(drawn))))


def _steps(request: str, better: str, worse: str) -> tuple[Transition, Transition]:
    one, other = (
        Transition(State(request), text, 0.0, State(request), terminated=True, truncated=False)
        for text in (better, worse)
    )
    return one, other


TEXT_JUDGE = Role(
    "text-judge",
    "share of pairs of texts in which the one that keeps to the principle is preferred",
    ("generate", "decide"),
    (Bed("hunch/Recipes-v0", stored=True),),
    pairs,
    verdicts,
    by_words,
    ways=COMPARING,
    blank="the request and the principle",
)
