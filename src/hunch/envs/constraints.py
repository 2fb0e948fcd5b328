"""Requests whose constraints a rule checks: length, words, letters and format. Ours; no model judges."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome
from hunch.envs.parts import Part, RequestEnv
from hunch.ranges import NonNegativeInt, PositiveInt, Share

TOPICS: Final = (
    *("a river", "bread", "the moon", "a bicycle", "winter", "a cat", "a library", "the sea", "a train"),
    *("an old house", "coffee", "a garden", "rain", "a football match", "a violin", "the desert", "a market"),
    *("a letter", "a lighthouse", "friendship", "a broken clock", "mathematics", "a forest", "a birthday"),
    *("an island", "a doctor", "snow", "a bridge", "a horse", "the future", "a kitchen", "a school"),
)
WORDS: Final = (
    *("blue", "quiet", "always", "morning", "stone", "light", "never", "small", "window", "green", "slowly"),
    *("together", "water", "old", "bright", "road", "warm", "silence", "paper", "again", "golden", "far"),
)
LETTERS: Final = "aeiostnrl"
WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
"""A word: letters, with hyphens or apostrophes between them."""
LONGEST: Final = 8_192
"""Characters of the longest text that is checked; a longer one meets no constraint."""


class Constraint(NamedTuple):
    """A constraint: what the request says, and whether a text meets it."""

    says: str
    holds: Callable[[str], bool]


def words(text: str) -> list[str]:
    """Return the words of a text in small letters."""
    return [word.lower() for word in WORD.findall(text)]


# ---- kinds of constraints, each drawn with a generator -----------------------------------------------------

Draw: TypeAlias = Callable[[np.random.Generator], Constraint]


def _length(rng: np.random.Generator) -> Constraint:
    kind, count = int(rng.integers(3)), int(rng.integers(3, 16))
    if kind == 0:
        return Constraint(f"Use exactly {count} words.", lambda text: len(words(text)) == count)
    if kind == 1:
        return Constraint(f"Use at most {count} words.", lambda text: 0 < len(words(text)) <= count)
    return Constraint(f"Use at least {count} words.", lambda text: len(words(text)) >= count)


def _word(rng: np.random.Generator) -> Constraint:
    wanted = WORDS[int(rng.integers(len(WORDS)))]
    kind = int(rng.integers(3))
    if kind == 0:
        return Constraint(f"Use the word '{wanted}'.", lambda text: wanted in words(text))
    if kind == 1:
        return Constraint(f"Begin with the word '{wanted}'.", lambda text: words(text)[:1] == [wanted])
    return Constraint(f"End with the word '{wanted}'.", lambda text: words(text)[-1:] == [wanted])


def _letter(rng: np.random.Generator) -> Constraint:
    letter = LETTERS[int(rng.integers(len(LETTERS)))]
    says = f"Do not use the letter '{letter}'."
    return Constraint(says, lambda text: _said(text) and letter not in text.lower())


def _format(rng: np.random.Generator) -> Constraint:
    kind, count = int(rng.integers(5)), int(rng.integers(2, 5))
    if kind == 0:
        return Constraint(
            "Write in capital letters only.", lambda text: bool(words(text)) and text == text.upper()
        )
    if kind == 1:
        return Constraint(
            "Write in small letters only.", lambda text: bool(words(text)) and text == text.lower()
        )
    if kind == 2:
        return Constraint(
            f"Write {count} lines, each beginning with '- '.", lambda text: _listed(text, count)
        )
    if kind == 3:
        return Constraint("End with a question mark.", lambda text: bool(words(text)) and text.endswith("?"))
    return Constraint("Put the whole text in double quotes.", _quoted)


def _said(text: str) -> bool:
    return bool(words(text))


def _listed(text: str, count: int) -> bool:
    lines = text.splitlines()
    return len(lines) == count and all(line.startswith("- ") and _said(line) for line in lines)


def _quoted(text: str) -> bool:
    return len(text) > 2 and text[0] == text[-1] == '"' and '"' not in text[1:-1] and _said(text)


KINDS: Final[Mapping[str, Draw]] = {"length": _length, "word": _word, "letter": _letter, "format": _format}
"""The kinds of constraints; a request has at most one of each."""


class Constraints(RequestEnv):
    """Write a text about a topic that meets constraints, which a rule checks.

    The reward is the share of the constraints that the text meets, without spaces at its ends; a success
    meets all. An episode is one text. Requests whose constraints exclude each other, such as a word with a
    forbidden letter, are not drawn.

    Args:
        kinds: Kinds of constraints, separated by commas, out of ``length``, ``word``, ``letter``, ``format``.
        most: Maximum number of constraints of a request.
        part: Requests for training (``train``), those that are held out from it (``held-out``), or ``all``.
        held_out: Share of the requests that are held out.
        draw: Seed of the parts.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if there is no such kind or part, or a kind is named twice.
    """

    def __init__(
        self,
        *,
        kinds: str = "length,word,letter,format",
        most: PositiveInt = 2,
        part: Part = "train",
        held_out: Share = 0.2,
        draw: NonNegativeInt = 0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(part, held_out, draw, render_mode)
        self.kinds = tuple(filter(None, (kind.strip() for kind in kinds.split(","))))
        unknown = [kind for kind in self.kinds if kind not in KINDS] if self.kinds else ["nothing"]
        if unknown:
            raise UsageError(f"kinds takes {', '.join(KINDS)}, separated by commas, not {unknown[0]!r}.")
        if twice := next((kind for kind in self.kinds if self.kinds.count(kind) > 1), ""):
            raise UsageError(f"kinds names {twice} twice: a request has at most one constraint of a kind.")
        self.most = most
        self.constraints: tuple[Constraint, ...] = ()

    def request(self, rng: np.random.Generator) -> tuple[str, tuple[Constraint, ...]]:
        """Draw a request and its constraints."""
        topic = TOPICS[int(rng.integers(len(TOPICS)))]
        count = 1 + int(rng.integers(min(self.most, len(self.kinds))))
        kinds = [self.kinds[int(i)] for i in np.sort(rng.permutation(len(self.kinds))[:count])]
        drawn = tuple(KINDS[kind](rng) for kind in kinds)
        return " ".join([f"Write one sentence about {topic}.", *(each.says for each in drawn)]), drawn

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        request, self.constraints = self.drawn(
            options,
            lambda: self.request(self.task_random),
            lambda each: each[0] if possible(each[0]) else "",
        )
        return Outcome(request, None)

    def _move(self, action: str) -> Outcome:
        text = action.strip()[: LONGEST + 1]
        met = [len(text) <= LONGEST and each.holds(text) for each in self.constraints]
        missed = [each.says for each, holds in zip(self.constraints, met, strict=True) if not holds]
        event = f"Not met: {' '.join(missed)}" if missed else "All constraints are met."
        return Outcome("", None, sum(met) / len(met), terminated=True, success=all(met), event=event)


def possible(request: str) -> bool:
    """Return whether the constraints of a request do not exclude each other."""
    word = re.search(r"word '(\w+)'", request)
    letter = re.search(r"letter '(\w)'", request)
    few = re.search(r"Use (?:exactly|at most) (\d+) words", request)
    lines = re.search(r"Write (\d) lines", request)
    if word and letter and letter[1] in word[1]:
        return False
    return not (few and lines and int(few[1]) < int(lines[1]))
