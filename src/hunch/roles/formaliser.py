"""A language model that writes statements in English as formulas.

    n formulas for each text; those that cannot be parsed, or have other atoms than the text, are dropped
    formulas that a small model refutes are dropped, unless all are
    each of the rest is translated back into English, if requested: how often do the same words come back?
    the formula whose words come back most often is chosen; among equals the one with most votes

A wrong formula is not an error of the prover, and may be provable. Reports of proved statements must
therefore say how many of the formulas were meant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hunch.core import UsageError
from hunch.envs.proofs.english import english
from hunch.envs.proofs.logic import Goal, counter_model, read
from hunch.lm.base import LanguageModel
from hunch.lm.speech import Sampling

LONGEST: Final = 250
"""Maximum tokens of a formula, or of a sentence (ours)."""
READING: Final = Sampling(max_tokens=LONGEST, temperature=1.0)
"""How answers are sampled."""


class Formaliser:
    """Translates statements into formulas by a vote, and by a round trip back to English.

    Args:
        lm: A model that generates.
        readings: Number of formulas per text.
        returns: Translations back into English of each different formula; 0 for a vote alone.
        max_tokens: Maximum tokens of an answer.
    """

    def __init__(
        self, lm: LanguageModel, readings: int = 5, returns: int = 0, max_tokens: int = LONGEST
    ) -> None:
        self.lm = lm
        self.readings = readings
        self.returns = returns
        self.sampling = replace(READING, max_tokens=max_tokens)

    def read(self, texts: Sequence[str]) -> list[Goal | None]:
        """Return the formula of each text; None if no answer can be used."""
        answers = self.lm.generate([prompt(text) for text in texts], self.readings, self.sampling)
        votes = [_votes(text, of_text) for text, of_text in zip(texts, answers, strict=True)]
        matches = self._returned(texts, votes)
        return [_chosen(of_text, came_back) for of_text, came_back in zip(votes, matches, strict=True)]

    def _returned(self, texts: Sequence[str], votes: Sequence[Mapping[Goal, int]]) -> list[dict[Goal, int]]:
        """Return for each text and reading how many of its translations are the text in other letters."""
        matches: list[dict[Goal, int]] = [{} for _ in texts]
        if not self.returns:
            return matches
        pairs = [(i, goal) for i, readings in enumerate(votes) for goal in readings]
        if not pairs:
            return matches
        translations = self.lm.generate([backward(goal) for _, goal in pairs], self.returns, self.sampling)
        for (i, goal), answers in zip(pairs, translations, strict=True):
            matches[i][goal] = sum(_words(answer) == _words(texts[i]) for answer in answers)
        return matches


def _chosen(votes: Mapping[Goal, int], matches: Mapping[Goal, int]) -> Goal | None:
    """Return the reading whose translations match most often; among equal ones, that with most votes."""
    return max(votes, key=lambda reading: (matches.get(reading, 0), votes[reading]), default=None)


def _votes(text: str, answers: Sequence[str]) -> Mapping[Goal, int]:
    """Count the usable readings of a text, the first one first; refuted ones only if all are."""
    known = set(re.findall(r"\w+", text))
    readings: list[Goal] = []
    for answer in answers:
        goal = parsed(answer)
        if goal and known.issuperset(goal.atoms):  # a formula about what the text names
            readings.append(goal)
    unrefuted = [goal for goal in readings if counter_model(goal) is None]
    return Counter(unrefuted or readings)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def parsed(answer: str) -> Goal | None:
    """Return the formula that an answer writes in symbols; None if there is none."""
    try:
        return read(answer.strip())
    except UsageError:
        return None


_EXAMPLE = read("p & q -> r, ~s |- p | (q -> s)")
_SYMBOLS = (
    "in symbols: A -> B for if A then B, A & B, A | B, ~A for it is not the case that A, commas between what "
    "is supposed, and |- before what is to be shown."
)


def prompt(text: str) -> str:
    """Return the prompt that a model continues with a formula."""
    shown = f"English: {english(_EXAMPLE)}\nSymbols: {_EXAMPLE}"
    return f"Write each statement {_SYMBOLS}\n\n{shown}\n\nEnglish: {text}\nSymbols: "


def backward(goal: Goal) -> str:
    """Return the prompt that a model continues with an English sentence."""
    shown = f"Symbols: {_EXAMPLE}\nEnglish: {english(_EXAMPLE)}"
    return f"Write each statement in English. It is {_SYMBOLS}\n\n{shown}\n\nSymbols: {goal}\nEnglish: "
