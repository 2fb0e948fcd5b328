"""Two more models of word overlap: the lexical controls of the study ``priors-knowledge``.

- ``tfidf``: a bag of words weighted by rarity, ln((1 + n) / (1 + n_word)) + 1 (the smooth form of Sparck
  Jones, 1972), with n documents of which n_word contain the word;
- ``random-words``: the mean of one random vector per word.

The documents of ``tfidf`` are the distinct tasks, lines and actions that random walks through generated
household games of pools 1000 to 1009 show (counted by the study ``priors-knowledge``). The counts are
in ``document_frequencies.json``. Evidence L0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from math import log
from pathlib import Path

import numpy as np

from hunch.core import UsageError
from hunch.lm.backends.bag_of_words import DIM, BagOfWords, word_hash, words
from hunch.lm.backends.words import PLACES
from hunch.lm.base import Float32Array, Model, Verb, unit

FREQUENCIES = Path(__file__).with_name("document_frequencies.json")


class TfIdf(BagOfWords):
    """Signed counts of hashed words, weighted by inverse document frequency; unknown words rank as rarest."""

    version, usual = "tfidf-1", PLACES

    def weight(self, word: str) -> float:
        """Return the inverse document frequency of a word."""
        total, holding = frequencies()
        return log((1 + total) / (1 + holding.get(word, 0))) + 1


class RandomWords(Model):
    """The mean of one random vector per word, scaled to length 1."""

    verbs: frozenset[Verb] = frozenset({"embed"})
    dim = DIM

    def __init__(self, *, seed: int = 0) -> None:
        """Set the seed of the vectors.

        Raises:
            UsageError: if the seed is not a whole number of at least 0.
        """
        if not isinstance(seed, int) or seed < 0:
            raise UsageError(f"The seed of random-words must be a whole number of at least 0, not {seed}.")
        self.name, self.revision, self.seed = "random-words", f"1:{seed}", seed
        self._known: dict[str, Float32Array] = {}

    def embed(self, texts: Sequence[str]) -> Float32Array:
        """Return one vector per text, shape (len(texts), 384); an empty text gives the zero vector."""
        vectors = [unit(sum(map(self._vector, words(text)), np.zeros(DIM, np.float32))) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, DIM), dtype=np.float32)

    def _vector(self, word: str) -> Float32Array:
        if word not in self._known:
            rng = np.random.default_rng([self.seed, word_hash(word)])
            self._known[word] = rng.standard_normal(DIM, dtype=np.float32)
        return self._known[word]


@cache
def frequencies() -> tuple[int, dict[str, int]]:
    """Return the number of documents, and for each word the number of documents that contain it."""
    read = json.loads(FREQUENCIES.read_text(encoding="utf-8"))
    return read["documents"], read["holding"]
