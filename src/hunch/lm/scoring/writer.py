"""Writes samples of prompts, and computes no next-token distribution twice.

A sample is drawn token by token, each from the distribution after its prompt and the tokens written so far.
These distributions are cached (:mod:`hunch.lm.scoring.recent`). Samples with equal tokens share them, and a
sample along texts that were written before costs nothing: not even its prompt is read. As soon as one of a
prompt's samples leaves the known texts, the prompt is read, and the texts of all its samples are computed a
token at a time, together with those of other prompts.

The distributions have the same bits whether cached or computed again, and each sample has its own random
generator. So the cache changes no sample.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from hunch.lm.scoring.recent import Recent
from hunch.lm.scoring.trie import Tokens
from hunch.lm.speech import Sampling

Text: TypeAlias = tuple[int, ...]
"""The tokens written after a prompt."""
Row: TypeAlias = Any
"""The next-token distribution, shape (vocabulary,): an array or tensor that only its reader interprets."""
MOST_BYTES: Final = 2**30
"""Maximum bytes of keys and values of texts written together; a single prompt may exceed it."""


class Draft:
    """A sample in progress.

    Attributes:
        rng: The random generator of this sample.
        tokens: The tokens written so far.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.tokens: list[int] = []


class Way(NamedTuple):
    """How the texts after a prompt are computed; other ways may differ in the last bits."""

    name: str
    rows: int  # maximum number of texts computed together


class Group(Protocol):
    """The keys and values of texts after one prompt.

    Attributes:
        texts: The texts, all of the same length; at first only the empty text.
    """

    texts: Sequence[Text]

    @property
    def size(self) -> int:
        """Size in bytes."""
        ...

    def follow(self, texts: Sequence[Text]) -> None:
        """Prepare for texts that extend earlier ones by one token, or that start again after the prompt."""
        ...


class Reader(Protocol):
    """Computes next-token distributions.

    Attributes:
        computed: Number of tokens of prompts computed so far.
        saved: Number of tokens of prompts found in a cache so far.
    """

    computed: int
    saved: int

    @property
    def width(self) -> int:
        """Maximum number of texts computed together."""
        ...

    def way(self, prompt: Tokens, room: int) -> Way:
        """Return how texts of up to ``room`` tokens after a prompt are computed."""
        ...

    def begin(self, prompt: Tokens, way: Way, rows: int, room: int) -> tuple[Group, Row]:
        """Read a prompt; return a group for up to ``rows`` texts, and the distribution of the first token."""
        ...

    def advance(self, groups: Sequence[Any]) -> Sequence[Row]:
        """Read the last token of all texts in the groups; return the next-token distributions, in order."""
        ...

    def draw(self, rows: Sequence[Row], sampling: Sampling, drafts: Sequence[Draft]) -> list[int]:
        """Draw the next token of each draft from its distribution, with the draft's random generator."""
        ...


class Work:
    """A prompt whose samples are being written.

    Attributes:
        drafts: The samples that are written together at present, all of the same length.
        group: The texts that were read; None if none was needed yet.
        text_rows: Distributions after the prompt and after the latest texts that were read.
    """

    def __init__(self, prompt: Tokens, drafts: Sequence[Draft], way: Way) -> None:
        self.prompt = prompt
        self.way = way
        self.rows = min(way.rows, len(drafts))
        self.drafts = list(drafts[: way.rows])
        self._waiting = list(drafts[way.rows :])
        self.group: Group | None = None
        self.text_rows: dict[Text, Row] = {}
        self._digest = hashlib.sha256(np.array(prompt, np.int64).tobytes()).digest()

    def key(self, text: Text) -> tuple[str, bytes, Text]:
        """Return the key of the distribution after a text."""
        return self.way.name, self._digest, text

    @property
    def texts(self) -> list[Text]:
        """The different texts written so far."""
        return list(dict.fromkeys(tuple(draft.tokens) for draft in self.drafts))

    def drop(self, ended: Callable[[list[int]], bool]) -> None:
        """Remove samples that have ended; when all have, the next samples begin."""
        self.drafts = [draft for draft in self.drafts if not ended(draft.tokens)]
        if not self.drafts:
            self.drafts = self._waiting[: self.rows]
            self._waiting = self._waiting[self.rows :]

    def next(self, read: Group) -> list[Text]:
        """Return the texts to read next: one token longer than the last, or the first token again."""
        texts = self.texts
        depth = len(read.texts[0])
        continues = depth < len(texts[0]) and {text[:depth] for text in texts} <= set(read.texts)
        length = depth + 1 if continues else 1
        return list(dict.fromkeys(text[:length] for text in texts))


class Writer:
    """Writes samples, sharing distributions between them.

    Args:
        reader: Computes the distributions.
        limit: Maximum size of the cached distributions, in bytes.

    Attributes:
        computed: Number of written tokens that were read so far to compute the next distribution.
    """

    def __init__(self, reader: Reader, limit: int) -> None:
        self.reader = reader
        self.computed = 0
        self.known: Recent[Row] = Recent(limit)

    def write(
        self,
        requests: Sequence[tuple[Tokens, Sequence[np.random.Generator]]],
        sampling: Sampling,
        ended: Callable[[list[int]], bool],
    ) -> list[list[list[int]]]:
        """Return the tokens of each sample of each prompt.

        Args:
            requests: The tokens of each prompt, and the random generators of its samples.
            sampling: How tokens are drawn.
            ended: Returns whether a sample with these tokens has ended.
        """
        drafts = [[Draft(rng) for rng in rngs] for _, rngs in requests]
        room = sampling.max_tokens
        wave: list[Work] = []  # the prompts that are written together
        rows = 0
        for (prompt, _), samples in zip(requests, drafts, strict=True):
            work = Work(prompt, samples, self.reader.way(prompt, room))
            needed = work.rows if work.way.rows > 1 else self.reader.width
            if wave and rows + needed > self.reader.width:
                self._write(wave, sampling, ended)
                wave = []
                rows = 0
            wave.append(work)
            rows += needed
        self._write(wave, sampling, ended)
        return [[draft.tokens for draft in samples] for samples in drafts]

    def _write(self, wave: Sequence[Work], sampling: Sampling, ended: Callable[[list[int]], bool]) -> None:
        """Write samples of some prompts: draw what can be drawn, then compute what is missing, and so on."""
        while True:
            open_works = [work for work in wave if work.drafts]
            if not open_works:
                return

            # Where the next distribution of every sample is known, draw its next token.
            ready: list[Work] = []
            drafts: list[Draft] = []
            rows: list[Row] = []
            for work in open_works:
                rows_of_work = self._rows(work)
                if rows_of_work:
                    ready.append(work)
                    drafts += work.drafts
                    rows += rows_of_work
            if not ready:
                self._compute(open_works, sampling.max_tokens)
                continue
            for draft, token in zip(drafts, self.reader.draw(rows, sampling, drafts), strict=True):
                draft.tokens.append(token)
            for work in ready:
                work.drop(ended)

    def _rows(self, work: Work) -> list[Row]:
        """Return the distribution that each sample needs next; nothing unless all are known."""
        rows: dict[Text, Row] = {}
        for text in work.texts:
            row = work.text_rows.get(text)
            if row is None:
                row = self.known.find(work.key(text))
            if row is None:
                return []
            rows[text] = row
        return [rows[tuple(draft.tokens)] for draft in work.drafts]

    def _compute(self, wave: Sequence[Work], room: int) -> None:
        """Read prompts that were not read yet, and one more token of the texts of the others."""
        going_on = [(work, work.group) for work in wave if work.group is not None]
        held = sum(group.size for _, group in going_on)
        for work in wave:
            if work.group is None and (not held or held < MOST_BYTES):
                work.group, row = self.reader.begin(work.prompt, work.way, work.rows, room)
                self._keep(work, [()], [row])
                held += work.group.size
        for work, group in going_on:
            group.follow(work.next(group))
        rows = iter(self.reader.advance([group for _, group in going_on]) if going_on else ())
        for work, group in going_on:
            self._keep(work, group.texts, [next(rows) for _ in group.texts])
            self.computed += len(group.texts)

    def _keep(self, work: Work, texts: Sequence[Text], rows: Sequence[Row]) -> None:
        """Keep distributions: within the work until it goes on, and as long as there is room for them."""
        first = {text: row for text, row in work.text_rows.items() if not text}
        work.text_rows = first | dict(zip(texts, rows, strict=True))
        for text in texts:
            self.known.put(work.key(text), work.text_rows[text], work.text_rows[text].nbytes)
