"""Beginnings of reviews to be continued, whose sentiment VADER judges (extra ``tasks``).

This is the bed on which a policy was first tuned by reinforcement learning from preferences (Ziegler et al.,
2019; RL4LMs, ICLR 2023), with beginnings that are made by rule and a judge that is a lexicon (Hutto and
Gilbert, ICWSM 2014). A lexicon can be satisfied without a sentence: look at the texts, not at the score
alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome
from hunch.envs.parts import Part, RequestEnv
from hunch.extras import library
from hunch.ranges import NonNegativeInt, Share

LONGEST: Final = 8_192
"""Characters that the judge reads."""
CLEAR: Final = 0.5
"""Score from which a continuation counts as a success (ours; VADER calls 0.05 positive)."""
# "this laptop" stands twice and is drawn twice as often. Without one of them the same seeds draw other
# beginnings than the recorded ones of docs/assets/studies/trained-rewards.json.
THINGS: Final = (
    *("this film", "the new series", "this documentary", "the musical", "this restaurant", "the hotel"),
    *(
        "this phone",
        "the headphones",
        "this book",
        "the concert",
        "this toaster",
        "the museum",
        "this laptop",
    ),
    *("this laptop", "the bakery", "this album", "the train", "this camera", "the campsite"),
)
TIMES: Final = (
    *("last night", "on Sunday", "two weeks ago", "in March", "after work", "in the morning"),
    *("for the first time", "twice this month", "on Thursday", "before the summer"),
)
PEOPLE: Final = (
    *(
        "with my sister",
        "with two cousins",
        "by myself",
        "with my parents",
        "with a colleague",
        "with the kids",
    ),
    *("with my neighbour", "with a man from work"),
)
OPENINGS: Final = (
    *("and my first thought was", "and what I remember is", "and to tell you how it was:"),
    *("and the thing that I noticed", "and when it was over I felt", "and I have to say that"),
)
VERBS: Final = {"film": "watched", "series": "watched", "documentary": "watched", "musical": "watched"} | {
    **{"restaurant": "visited", "hotel": "visited", "museum": "visited", "bakery": "visited"},
    **{"campsite": "visited", "book": "read", "concert": "heard", "album": "heard", "train": "took"},
}
"""What is done with a thing; the others are tried."""


class Reviews(RequestEnv):
    """Continue the beginning of a review; VADER judges the sentiment.

    The reward is VADER's compound score of the continuation alone, -1 to 1, with the sign of the wanted
    sentiment; 0 for an empty one. A score of 0.5 is a success. An episode is one text.

    Args:
        wanted: The sentiment that pays: ``positive`` or ``negative``.
        part: Beginnings for training (``train``), those that are held out from it (``held-out``), or ``all``.
        held_out: Share of the beginnings that are held out.
        draw: Seed of the parts.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if there is no such sentiment or part.
        NotInstalledError: if vaderSentiment is not installed.
    """

    called = "beginning"

    def __init__(
        self,
        *,
        wanted: Literal["positive", "negative"] = "positive",
        part: Part = "train",
        held_out: Share = 0.2,
        draw: NonNegativeInt = 0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(part, held_out, draw, render_mode)
        if wanted not in ("positive", "negative"):
            raise UsageError(f"wanted must be positive or negative, not {wanted!r}.")
        judges = library(
            "vaderSentiment.vaderSentiment", "The judge of reviews needs vaderSentiment", "tasks"
        )
        self.judge: Any = judges.SentimentIntensityAnalyzer()
        self.sign = 1.0 if wanted == "positive" else -1.0

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        return Outcome(self.drawn(options, lambda: beginning(self.task_random)), None)

    def _move(self, action: str) -> Outcome:
        text = action.strip()[:LONGEST]
        compound = float(self.judge.polarity_scores(text)["compound"]) if text else 0.0
        reward = self.sign * compound + 0.0  # no -0.0
        event = f"sentiment {compound:.2f}"
        return Outcome("", None, reward, terminated=True, success=reward >= CLEAR, event=event)


def beginning(rng: np.random.Generator) -> str:
    """Draw the beginning of a review, which says nothing good or bad; there are 8,640."""
    thing, time, people, opening = (
        choices[int(rng.integers(len(choices)))] for choices in (THINGS, TIMES, PEOPLE, OPENINGS)
    )
    verb = VERBS.get(thing.rpartition(" ")[2], "tried")
    return f"I {verb} {thing} {time} {people}, {opening}"
