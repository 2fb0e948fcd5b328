"""Encoders of the study vision-encoders: pictures by a model's eyes or as plain pixels, texts as words.

Our small model with eyes knows only the words of its captions, and a Q-function also reads the names of
actions. So texts are a bag of words in all arms, and only the pictures differ. ``eyes`` takes the shipped
model, ``eyes?folder=FOLDER`` another one of its kind, and ``eyes?side=16`` the 16 x 16 pixels of the shrunk
picture, which know nothing (L0).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hunch.core import EvidenceLevel, UsageError
from hunch.lm import load
from hunch.lm.backends.bag_of_words import BagOfWords
from hunch.lm.backends.seeing import opened
from hunch.lm.base import Float32Array, Model, Verb
from hunch.lm.prompts import Prompt, shown


class Eyes(Model):
    """One vector per text or picture; the shorter kind is filled up with zeros."""

    verbs: frozenset[Verb] = frozenset({"embed", "see"})

    def __init__(self, *, folder: str = "", side: int = 0) -> None:
        """Load the model, unless pictures are plain pixels.

        Raises:
            UsageError: if both a folder and a side are given, or the side is below 0.
        """
        if side < 0 or (folder and side):
            raise UsageError(f"eyes takes a folder, or a side of at least 1, not {folder!r} and {side}.")
        self.side, self.words = side, BagOfWords()
        spec = f"pocket?folder={folder}" if folder else "pocket?corpus=clip"
        self.model = None if side else load(spec, cache=None)
        self.seen = self.model.dim if self.model else 3 * side**2
        self.dim = max(self.seen, self.words.dim)
        self.name = f"eyes of {self.model.name}" if self.model else f"pixels {side} x {side}"
        self.revision = f"1:{self.model.revision}" if self.model else f"1:{side}"
        self.evidence: EvidenceLevel = self.model.evidence if self.model else "L0"

    def embed(self, texts: Sequence[Prompt]) -> Float32Array:
        """Return a vector per text, and per message that is one picture; shape (len(texts), dim)."""
        found = np.zeros((len(texts), self.dim), np.float32)
        pictures = [i for i, text in enumerate(texts) if not isinstance(text, str)]
        if pictures:
            found[pictures, : self.seen] = self._look([texts[i] for i in pictures])
        if written := [i for i, text in enumerate(texts) if isinstance(text, str)]:
            found[written, : self.words.dim] = self.words.embed([str(texts[i]) for i in written])
        return found

    def _look(self, pictures: Sequence[Prompt]) -> Float32Array:
        if self.model:
            return np.asarray(self.model.embed(pictures), np.float32)
        small = [opened(shown(own)[0]).resize((self.side, self.side)) for own in pictures]
        pixels = np.stack([np.asarray(own, np.float32).ravel() for own in small])
        return np.asarray(pixels / np.linalg.norm(pixels, axis=1, keepdims=True), np.float32)
