"""``scripted:formaliser``: reads and writes the English of :mod:`hunch.envs.proofs.english`; it may err.

It takes each connective for another one with probability ``error``, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from hunch.core import UsageError
from hunch.envs.proofs.english import english
from hunch.envs.proofs.logic import FALSE, Formula, Goal, read
from hunch.lm.backends.sampling import sample_rng
from hunch.lm.backends.scripted import RuleWriter
from hunch.lm.rules import writer

OPS: Final = {"if": ("->", "then"), "both": ("&", "and"), "either": ("|", "or")}


def parsed(text: str) -> Goal:
    """Read a statement in English.

    Raises:
        UsageError: if it is worded otherwise.
    """
    formulas = []
    for sentence in text.strip().removesuffix(".").split(". "):
        words = iter(sentence.removeprefix("Suppose that ").removeprefix("Show that ").split())
        formulas.append(_clause(words))
    return Goal.of(formulas[:-1], formulas[-1])


def _clause(words: Iterator[str]) -> Formula:
    word = next(words, "")
    if word in OPS:
        op, middle = OPS[word]
        left = _clause(words)
        if next(words, "") != middle:
            raise UsageError(f"There is no {middle!r} for {word!r}.")
        return Formula(op, (left, _clause(words)))
    following = next(words, "")
    if word == "it" and following == "is":  # not the case that
        for _ in range(4):
            next(words, "")
        return Formula("->", (_clause(words), FALSE))
    is_false = word == "a" and following == "contradiction"  # but "a holds" is the atom a
    if is_false:
        following = next(words, "")
    if following != "holds":
        raise UsageError(f"{word!r} is no clause.")
    return FALSE if is_false else Formula(word)


def damaged(formula: Formula, error: float, rng: np.random.Generator) -> Formula:
    """Take each connective for another one with a probability."""
    if not formula.parts:
        return formula
    parts = tuple(damaged(part, error, rng) for part in formula.parts)
    others = [op for op in ("->", "&", "|") if op != formula.op]
    return Formula(others[int(rng.integers(2))] if rng.random() < error else formula.op, parts)


@writer("formaliser", dials=("error",))
class FormaliserRule(RuleWriter):
    """The rule.

    Args:
        error: Probability that a connective is taken for another one.

    Raises:
        UsageError: if it is not from 0 to 1.
    """

    def __init__(self, error: float = 0.0) -> None:
        if not 0 <= error <= 1:
            raise UsageError("The dial of scripted:formaliser must be from 0 to 1.")
        self.error = error
        self.name = "scripted:formaliser"
        self.revision = f"2:{error}"

    def answer(self, prompt: str, sample: int) -> str:
        """Return the symbols for the English in the line before the last, or the English for its symbols."""
        rng = sample_rng(prompt, "formaliser", sample)
        asked, _, text = prompt.split("\n")[-2].partition(": ")
        try:
            goal = parsed(text) if asked == "English" else read(text)
        except UsageError:
            return "unreadable"
        damaged_formulas = [damaged(formula, self.error, rng) for formula in goal.formulas]
        damaged_goal = Goal.of(damaged_formulas[:-1], damaged_formulas[-1])
        return str(damaged_goal) if asked == "English" else english(damaged_goal)
