"""Compresses the episodes of many runs: every text is stored once, numbers in columns, then deflated.

A page holds one block of texts and one block per run, which the page unpacks when needed. Texts and sets of
admissible actions are numbered.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hunch.core import Explanation, FloatArray
from hunch.printable import printable_values
from hunch.report.episodes import RunEpisodes

LARGEST = 12_000_000
"""Maximum bytes of the blocks, so that a page stays below 15 MB."""


@dataclass
class Numbers:
    """Gives objects numbers, in the order in which they are first seen."""

    known: dict[Any, int] = field(default_factory=dict)

    def __getitem__(self, thing: Any) -> int:
        return self.known.setdefault(thing, len(self.known))


@dataclass
class Words:
    """The texts and action sets that the blocks of all runs share."""

    texts: Numbers = field(default_factory=Numbers)
    offers: Numbers = field(default_factory=Numbers)

    def offer(self, actions: Sequence[str]) -> int:
        """Return the number of a set of admissible actions."""
        return self.offers[tuple(self.texts[action] for action in actions)]

    def plain(self) -> dict[str, Any]:
        """Return the block of texts as plain values."""
        return {"texts": list(self.texts.known), "offers": list(self.offers.known)}


def pack(
    tales: Sequence[RunEpisodes], *, plain: bool = False, largest: int = LARGEST
) -> tuple[str, list[str]]:
    """Pack the episodes; if they are too large, keep the texts of only every second, fourth ... episode.

    Args:
        tales: The episodes of each run.
        plain: Leave the blocks as JSON, for browsers without ``DecompressionStream`` (before 2023).
        largest: Maximum characters of all blocks; actions alone may exceed it.

    Returns:
        The block of texts, and one block per run.
    """
    every = 1
    while True:
        words = Words()
        blocks = [encode(printable_values(_columns(tale, words, every)), plain=plain) for tale in tales]
        shared = encode(printable_values(words.plain()), plain=plain)
        longest = max((len(tale.episodes) for tale in tales), default=0)
        if len(shared) + sum(map(len, blocks)) <= largest or every > longest:
            return shared, blocks
        every *= 2


def encode(value: Any, *, plain: bool = False) -> str:
    """Return a value as JSON, deflated and in base64, or unchanged if ``plain``."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text if plain else base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _columns(tale: RunEpisodes, words: Words, every: int) -> dict[str, Any]:
    episodes = tale.episodes
    seen = [i for i in range(len(tale.replayed)) if i % every == 0 or i in tale.explained]
    shown = [tale.replayed[i].pictures or [""] * len(tale.replayed[i].answers) for i in seen]
    has_pictures = any(tale.replayed[i].pictures for i in seen)
    return {
        "step": [e.step for e in episodes],
        "return": [digits(e.episode_return) for e in episodes],
        "length": [e.length for e in episodes],
        "success": [int(e.success) for e in episodes],
        "seed": [e.seed for e in episodes],
        "training": len(tale.run.result.episodes),
        "actions": [words.texts[action] for e in episodes for action in e.actions],
        "seen": seen,
        "task": [words.texts[tale.replayed[i].task] for i in seen],
        "answers": [words.texts[answer] for i in seen for answer in tale.replayed[i].answers],
        "pictures": [words.texts[url] for urls in shown for url in urls] if has_pictures else [],
        "offers": [words.offer(offer) for i in seen for offer in tale.replayed[i].offers],
        "rewards": [digits(reward) for i in seen for reward in tale.replayed[i].rewards],
        "reason": tale.reason,
        "opinions": {i: [_opinion(step) for step in steps] for i, steps in tale.explained.items()},
        "whyNoOpinions": tale.why_not_explained,
    }


def _opinion(step: Explanation) -> dict[str, list[float | None]]:
    """Return the columns by name; the last one is the probability of each action."""
    chosen = {} if step.chosen is None else {"posterior": step.chosen}
    return {name: _row(figures) for name, figures in {**step.columns, **chosen}.items()}


def _row(values: FloatArray) -> list[float | None]:
    return [digits(float(value), 4) for value in values]


def digits(value: float, significant: int = 6) -> float | int | None:
    """Return a number rounded to significant digits, as an int if possible; None if it is not finite."""
    short = float(f"{value:.{significant}g}")
    if not np.isfinite(short):
        return None
    return int(short) if abs(short) < 1e15 and short == int(short) else short
