"""Functions that all backends share: random generators of samples, ends of texts, lists in prompts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from hunch.core import IntArray
from hunch.lm.prompts import Prompt
from hunch.lm.speech import Sampling

THOUGHTS = 2048
"""Default maximum tokens for the answer of a chat model, including thoughts (our choice)."""


def room_to_think(context: int | None) -> int:
    """Return the maximum tokens of a chat model's answer: the default, at most a quarter of its context."""
    return min(THOUGHTS, context // 4) if context else THOUGHTS


def count_words(options: Sequence[str]) -> IntArray:
    """Return the number of whitespace-separated words of each option, shape (n_options,)."""
    return np.array([len(option.split()) for option in options], dtype=np.int64)


def sample_rng(*request: Prompt | int | Sampling) -> np.random.Generator:
    """Return the random generator of one sample; the same request always gives the same generator."""
    digest = hashlib.sha256(json.dumps(request, default=Sampling.named).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def cut(text: str, stop: Sequence[str]) -> str:
    """Return the text before the first occurrence of any stop string."""
    ends = [text.find(mark) for mark in stop]
    return text[: min((end for end in ends if end >= 0), default=len(text))]


def listed_options(prompt: str) -> tuple[str, ...]:
    """Return the items of the last list in a prompt: consecutive lines that begin with ``"- "``.

    Models that are not language models (``uniform``, ``scripted:``) find their options in this way.
    """
    items: list[str] = []
    for line in reversed(prompt.splitlines()):
        if line.startswith("- "):
            items.append(line[2:].strip())
        elif items:
            break
    return tuple(reversed(items))
