"""A bag-of-words encoder: the control without knowledge of the meaning of words.

It uses the signed hashing trick (Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML
2009): the hash of a word gives an index and a sign. There is no vocabulary to fit, and two words that share
an index cancel out on average.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hunch.core import UsageError
from hunch.lm.base import Backend, Float32Array, Model, Verb, unit

BACKEND = Backend(
    "bag-of-words",
    f"{__name__}:BagOfWords",
    frozenset({"embed"}),
    "counts of hashed words: the control for what an encoder knows",
    costly=False,
)

DIM = 384  # as for minilm, so that networks on top of both have the same number of weights
WORD = r"\w+|[^\w\s]"
"""Pattern of a word or punctuation mark."""
_WORD = re.compile(WORD)


class BagOfWords(Model):
    """Signed counts of hashed words, scaled to length 1; an empty text gives the zero vector. Evidence L0.

    A word is a run of letters, digits and underscores in lower case, or a single other character.
    """

    verbs: frozenset[Verb] = frozenset({"embed"})
    version = "1"
    """Version of the counting, part of the cache key."""

    usual: ClassVar[int] = DIM
    """Default length of a vector."""

    def __init__(self, *, dim: int | None = None) -> None:
        """Set the length of a vector.

        Raises:
            UsageError: if it is not a positive whole number.
        """
        dim = self.usual if dim is None else dim
        if not isinstance(dim, int) or dim < 1:
            raise UsageError(f"A bag of words needs a dim of at least 1, not {dim}.")
        self.name = "bag-of-words"
        self.revision = f"{self.version}:{dim}"
        self.dim = dim

    def embed(self, texts: Sequence[str]) -> Float32Array:
        """Return one vector per text, shape (len(texts), dim)."""
        vectors = [self._scaled(self._count(text)) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, self.dim), dtype=np.float32)

    @staticmethod
    def _scaled(vector: Float32Array) -> Float32Array:
        return unit(vector)

    def _count(self, text: str) -> Float32Array:
        counts = np.zeros(self.dim, dtype=np.float32)
        for word in words(text):
            number = word_hash(word)
            counts[(number >> 1) % self.dim] += self.weight(word) * (1 if number & 1 else -1)
        return counts

    def weight(self, word: str) -> float:
        """Return the weight of a word; 1 for all words here."""
        return 1


def words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text in lower case, in order."""
    return _WORD.findall(text.lower())


def word_hash(word: str) -> int:
    """Return a 64-bit hash that is the same in every process, unlike Python's ``hash``."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
