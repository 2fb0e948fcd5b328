"""A language model that writes statements in English as formulas.

    n readings of each text; those that cannot be parsed, or have other atoms than the text, are dropped
    readings that a small model refutes are dropped, unless all are
    the reading with most votes stands

A false reading is no error of the prover, and a wrong one can be provable: so whoever reports what was proved
has to say beside it how much of that was meant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hunch.core import UsageError
from hunch.envs.proofs.english import english
from hunch.envs.proofs.logic import Goal, counter_model, read
from hunch.lm.base import LanguageModel, Sampling

READING = Sampling(max_tokens=250, temperature=1.0)


class Reading(NamedTuple):
    """How a text was read: the statement, None if no reading can be used; and its share of all readings."""

    goal: Goal | None
    votes: float


class Formaliser:
    """Reads statements by a vote.

    Args:
        lm: A model that generates.
        readings: Readings of a text.
    """

    def __init__(self, lm: LanguageModel, readings: int = 5) -> None:
        self.lm, self.readings = lm, readings

    def read(self, texts: Sequence[str]) -> list[Reading]:
        """Return the reading of each text."""
        answers = self.lm.generate([prompt(text) for text in texts], self.readings, READING)
        return [self._voted(text, own) for text, own in zip(texts, answers, strict=True)]

    def _voted(self, text: str, answers: Sequence[str]) -> Reading:
        found = [goal for answer in answers if (goal := _parsed(answer, text)) is not None]
        votes = Counter([goal for goal in found if counter_model(goal) is None] or found)
        if not votes:
            return Reading(None, 0.0)
        goal, n = votes.most_common(1)[0]
        return Reading(goal, n / len(answers))


def _parsed(answer: str, text: str) -> Goal | None:
    try:
        goal = read(answer.strip())
    except UsageError:
        return None
    return goal if set(goal.atoms) <= set(re.findall(r"\w+", text)) else None


_EXAMPLE = read("p & q -> r, ~s |- p | (q -> s)")


def prompt(text: str) -> str:
    """Return the prompt that a model continues with a statement in symbols."""
    return (
        "Write each statement in symbols: A -> B for if A then B, A & B, A | B, ~A for it is not the case "
        "that A, commas between what is supposed, and |- before what is to be shown.\n\n"
        f"English: {english(_EXAMPLE)}\nSymbols: {_EXAMPLE}\n\nEnglish: {text}\nSymbols: "
    )
