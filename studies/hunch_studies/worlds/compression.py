"""Compression: keep some words of a sentence, in order; the reward reads no reference, the measure does.

A sentence has a core (who does what to what) and parts that may be left out. The reward is the mean of three
parts, as in Ghalandari et al., "Efficient Unsupervised Sentence Compression by Fine-tuning Transformers with
Reinforcement Learning" (ACL 2022): fluency under a model that has read short sentences, the share of the
sentence's content that is kept, and how near the length is to the one that is asked for. The gold compression
keeps the core and what the length allows, by rank; no reward reads it. The grammar is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise
from math import exp, log
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.lm import Cached, load
from hunch.lm.base import LanguageModel
from hunch.ranges import PositiveInt

PEOPLE: Final = ("farmer", "baker", "sailor", "teacher", "doctor", "singer", "miller", "painter")
THINGS: Final = ("cart", "boat", "lamp", "letter", "horse", "coat", "violin", "basket")
PLACES: Final = ("market", "harbour", "garden", "forest", "village", "station")
VERBS: Final = ("sold", "bought", "found", "painted", "lost", "carried", "repaired", "hid")
LIVED: Final = ("lived", "slept", "worked", "sang")
KINDS: Final = ("old", "young", "small", "red", "heavy", "quiet")
WAYS: Final = ("quickly", "gladly", "slowly", "secretly")
TIMES: Final = ("yesterday", "later", "finally", "today")
RANKS: Final = ("core", "place", "object kind", "person kind", "way", "time", "aside")
"""Parts of a sentence, from the one that is never left out to the first one that is."""
LENGTHS: Final = (5, 9)
"""Fewest and most words that are asked for."""
SPREAD: Final = 1.5
"""Standard deviation of the length part, in words."""
PARTS: Final = ("fluency", "content", "length")
FLOOR: Final = 1e-3
"""Probability of a word that was never seen after another one."""
_GIVEN: Final = frozenset(("the", "a", "in", "near", "who", *TIMES))
"""Words without content."""


class Sentence(NamedTuple):
    """Words, the part that each belongs to, and the length that is asked for."""

    words: tuple[str, ...]
    parts: tuple[str, ...]
    length: int

    def gold(self) -> tuple[int, ...]:
        """Return the places of the words to keep: parts by rank, as long as they fit."""
        kept: set[str] = set()
        for part in RANKS:
            if sum(own in kept | {part} for own in self.parts) <= self.length:
                kept.add(part)
        return tuple(i for i, part in enumerate(self.parts) if part in kept)

    def keeping(self, places: Sequence[int]) -> str:
        """Return the words at some places as a text."""
        return " ".join(self.words[i] for i in places)


def drawn(rng: np.random.Generator, short: bool = False) -> Sentence:
    """Draw a sentence; a short one has at most two parts besides the core."""

    def pick(words: Sequence[str]) -> str:
        return str(rng.choice(words))

    few = set(rng.permutation(RANKS[1:])[: int(rng.integers(3))])
    has = {part: part in few if short else bool(rng.random() < 0.75) for part in RANKS[1:]}
    pieces = [
        *([("time", pick(TIMES))] * has["time"]),
        ("core", "the"),
        *([("person kind", pick(KINDS))] * has["person kind"]),
        ("core", pick(PEOPLE)),
        *([("aside", f"who {pick(LIVED)} near the {pick(PLACES)}")] * has["aside"]),
        *([("way", pick(WAYS))] * has["way"]),
        ("core", f"{pick(VERBS)} a"),
        *([("object kind", pick(KINDS))] * has["object kind"]),
        ("core", pick(THINGS)),
        *([("place", f"in the {pick(PLACES)}")] * has["place"]),
    ]
    words = [(word, part) for part, text in pieces for word in text.split()]
    length = int(rng.integers(LENGTHS[0], LENGTHS[1] + 1))
    return Sentence(tuple(w for w, _ in words), tuple(part for _, part in words), length)


@cache
def pool(split: str, n: int) -> tuple[Sentence, ...]:
    """Return the sentences of a split, with more words than are asked for."""
    rng, found = np.random.default_rng({"training": 1, "held out": 2}[split]), list[Sentence]()
    while len(found) < n:
        if len((own := drawn(rng)).words) > own.length:
            found.append(own)
    return tuple(found)


class Fluency:
    """A model of which word follows which, counted in 4,000 short sentences."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self.pairs: Counter[tuple[str, str]] = Counter()
        for _ in range(4_000):
            words = ["", *drawn(rng, short=True).words, ""]
            self.pairs.update(pairwise(words))
        self.totals = Counter[str]()
        for (one, _), times in self.pairs.items():
            self.totals[one] += times

    def __call__(self, text: str) -> float:
        """Return the mean log-probability of a text's words and its end."""
        words = ["", *text.split(), ""]
        chances = [max(FLOOR, self.pairs[p] / (self.totals[p[0]] or 1)) for p in pairwise(words)]
        return float(np.mean(np.log(chances)))


class Read:
    """The fluency under a language model, asked for the probability of a text."""

    def __init__(self, lm: LanguageModel) -> None:
        self.lm = lm

    def __call__(self, text: str) -> float:
        """Return the log-probability of a text per token."""
        [found] = self.lm.score(["A sentence:"], [[f" {text}"]])
        return float(found.logprobs[0] / found.tokens[0])


@cache
def _fluency() -> Fluency:
    return Fluency()


@cache
def _weights() -> dict[str, float]:
    """Return the weight of each content word: rare ones say more."""
    counted = Counter(word for own in pool("training", 1_000) for word in set(own.words))
    return {word: log(1_000 / n) for word, n in counted.items() if word not in _GIVEN}


class Compression(TextEnv):
    """Shorten a sentence by leaving out words.

    Args:
        split: Sentences for ``training``, or those ``held out``.
        sentences: Number of sentences of the split, which come again.
        measure: What is paid: the ``reward``, or the F1 of the kept words against the ``gold`` compression,
            for evaluations.
        parts: Parts of the reward that count, separated by commas; all by default.
        lm: A model that scores, for the fluency. Default: word pairs, counted in short sentences.
        max_steps: Step limit of an episode; the first step ends it.
        render_mode: ``"ansi"``.

    Raises:
        UsageError: for an unknown part, or a model that cannot score.
    """

    offers = ("free_text", "events")

    def __init__(
        self,
        *,
        split: Literal["training", "held out"] = "training",
        sentences: PositiveInt = 1_000,
        measure: Literal["reward", "gold"] = "reward",
        parts: str = ",".join(PARTS),
        lm: str = "",
        max_steps: PositiveInt = 1,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        self.every, self.measure = pool(split, sentences), measure
        self.parts = tuple(part.strip() for part in parts.split(","))
        if unknown := [part for part in self.parts if part not in PARTS]:
            raise UsageError(f"The reward has no part {unknown[0]!r}: it has {', '.join(PARTS)}.")
        self.models: dict[str, Cached] = {}
        if lm:
            self.models = {"fluency": load(lm)}
            if "score" not in self.models["fluency"].verbs:
                raise UsageError(f"The fluency of a text is its probability, and {lm} cannot score texts.")
        self.fluency: Fluency | Read = Read(self.models["fluency"]) if lm else _fluency()

    @cached_property
    def examples(self) -> tuple[tuple[str, tuple[str, ...]], ...]:  # type: ignore[override]
        """Sentences to read: each is its own copy, so that nothing of the gold compression is shown."""
        return tuple((asked(own), (" ".join(own.words),)) for own in pool("training", 1_000))

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Compression has no option {next(iter(options))!r} for reset.")
        self.sentence = self.every[int(self.task_random.integers(len(self.every)))]
        return Outcome(asked(self.sentence), None)

    def _move(self, action: str) -> Outcome:
        own, words = self.sentence, action.split()
        found = f1(own, words)
        valid = bool(words) and is_part(words, own.words)
        paid = found if self.measure == "gold" else self.reward(words) if valid else 0.0
        told = (
            f"{len(words)} of {len(own.words)} words are kept."
            if valid
            else "This is no part of the sentence."
        )
        return Outcome(asked(own), None, paid if valid else 0.0, True, valid, event=told)

    def reward(self, words: Sequence[str]) -> float:
        """Return the mean of the parts of the reward of some words, from 0 to 1."""
        own, weights, kept = self.sentence, _weights(), Counter(words)
        asked_for = Counter(own.words)
        total = sum(weights.get(word, 0.0) * n for word, n in asked_for.items())
        there = sum(weights.get(word, 0.0) * min(n, kept[word]) for word, n in asked_for.items())
        each = {
            "fluency": max(0.0, 1 + self.fluency(" ".join(words)) / -log(FLOOR)),
            "content": there / total,
            "length": exp(-0.5 * ((len(words) - own.length) / SPREAD) ** 2),
        }
        return float(np.mean([each[part] for part in self.parts]))

    def oracle(self) -> list[str]:
        """Return the gold compression."""
        return [self.sentence.keeping(self.sentence.gold())]


def asked(sentence: Sentence) -> str:
    """Return what is shown of a sentence."""
    return f"{sentence.length} words : {' '.join(sentence.words)}"


def is_part(words: Sequence[str], of: Sequence[str]) -> bool:
    """Return whether words come in this order in others."""
    left = iter(of)
    return all(word in left for word in words)


def f1(sentence: Sentence, words: Sequence[str]) -> float:
    """Return the F1 of words against those of the gold compression."""
    gold = Counter(sentence.words[i] for i in sentence.gold())
    both = sum((gold & Counter(words)).values())
    return 2 * both / (sum(gold.values()) + len(words)) if words else 0.0
