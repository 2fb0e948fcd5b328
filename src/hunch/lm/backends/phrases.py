"""A bag of phrases: the order of words matters, and numbers count as quantities.

A bag of words cannot tell "position (0, 1)" from "(1, 0)", and for it "0.05" differs from "0.06" as much as
from "0.5". Here the features are runs of one to three words (signed hashing of n-grams, as in Joulin et al.,
"Bag of Tricks for Efficient Text Classification", EACL 2017). In a run, a number is written ``#``, and the
run's entry is ln(1 + number). Whole numbers are also words. Raised and circled digits, such as ², are words
only.
"""

from __future__ import annotations

import math
import re

import numpy as np

from hunch.lm.backends.bag_of_words import BagOfWords, word_hash
from hunch.lm.base import Backend, Float32Array

BACKEND = Backend(
    "phrases",
    f"{__name__}:Phrases",
    frozenset({"embed"}),
    "hashed phrases with their numbers: encodes positions and measurements",
    costly=False,
)

LONGEST = 3
"""Maximum number of words in a run."""
_PIECE = re.compile(r"\d+(?:\.\d+)?|\w+|[^\w\s]")


class Phrases(BagOfWords):
    """Signed sums of hashed runs of words and of the numbers in them, not scaled; evidence L0."""

    version = "phrases-1"

    @staticmethod
    def _scaled(vector: Float32Array) -> Float32Array:
        return vector

    def _count(self, text: str) -> Float32Array:
        counts = np.zeros(self.dim, dtype=np.float32)
        for run, amount in phrases(text):
            number = word_hash(run)
            counts[(number >> 1) % self.dim] += amount * (1 if number & 1 else -1)
        return counts


def phrases(text: str) -> list[tuple[str, float]]:
    """Return the runs of a text with their entries: 1, or ln(1 + number) if the last word is a number."""
    pieces = _PIECE.findall(text.lower())
    masked = ["#" if piece[0].isdecimal() else piece for piece in pieces]
    phrases: list[tuple[str, float]] = []
    for end, piece in enumerate(pieces):
        amount = math.log1p(float(piece)) if masked[end] == "#" else 1.0
        starts = range(max(0, end + 1 - LONGEST), end + 1)
        phrases += [(" ".join(masked[start : end + 1]), amount) for start in starts]
        if piece.isdecimal():
            phrases += [(" ".join([*masked[start:end], piece]), 1.0) for start in starts]
    return phrases
