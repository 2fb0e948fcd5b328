"""The formaliser: does the model translate English statements into the intended formulas?

Prompt and reader are those of ``alpha-proof`` (:class:`hunch.roles.formaliser.Formaliser`), with one formula
per text. The statements are variants of a few theorems that no small model refutes. The lexical
stand-in replaces each word by a symbol, without brackets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from hunch.audition.question import POOL, USUAL, Bed, Manner, Role, Scores, in_words
from hunch.envs.proofs.english import english
from hunch.envs.proofs.logic import Goal, counter_model, read
from hunch.envs.proofs.statements import variants
from hunch.lm.base import LanguageModel
from hunch.roles.formaliser import LONGEST, Formaliser, parsed

_BED = Bed("hunch/Proof-v0", stored=True)
_KNOWN: Final = (
    "p -> q, q -> r |- p -> r",
    "p & q -> r |- p -> (q -> r)",
    "p | q, p -> r, q -> r |- r",
    "~(p | q) |- ~p & ~q",
    "p -> q, ~q |- ~p",
    "(p -> q) & (p -> r) |- p -> q & r",
    "p, p -> q | r, ~q |- r",
    "(p | q) & r, p -> s |- q | s",
)
_SYMBOLS: Final = {
    **{"Suppose that": ",", "Show that": " |-", "it is not the case that": "~", "a contradiction": "false"},
    **{"then": "->", "and": "&", "or": "|", "if": "", "both": "", "either": "", "holds": ""},
}


def statements(bed: Bed, n: int, seed: int) -> list[Goal]:
    """Draw n different statements."""
    rng, formulas = np.random.default_rng([POOL, seed]), dict[Goal, None]()
    while len(formulas) < n:
        known = read(_KNOWN[int(rng.integers(len(_KNOWN)))])
        for goal in (again for first in variants(known, 1, rng) for again in variants(first, 1, rng)):
            if counter_model(goal) is None:
                formulas[goal] = None
    return list(formulas)[:n]


def readings(lm: LanguageModel, drawn: Sequence[Goal], seed: int, manner: Manner = USUAL) -> Scores:
    """Return for each statement whether the model's formula is the intended one."""
    in_words(manner)
    reader = Formaliser(lm, readings=1, max_tokens=manner.max_tokens or LONGEST)
    return _scored(drawn, reader.read([english(goal) for goal in drawn]))


def by_words(drawn: Sequence[Goal], seed: int) -> Scores:
    """Return the scores of the lexical stand-in, which replaces each word by a symbol."""
    return _scored(drawn, [replaced(english(goal)) for goal in drawn])


def replaced(text: str) -> Goal | None:
    """Return the statement with each word replaced by a symbol; None if it cannot be parsed."""
    for words, symbol in _SYMBOLS.items():
        text = re.sub(rf"\b{words}\b", symbol, text)
    return parsed(text.replace(".", "").strip(" ,"))


def _scored(drawn: Sequence[Goal], stated: Sequence[Goal | None]) -> Scores:
    right = np.array([formula == goal for formula, goal in zip(stated, drawn, strict=True)], float)
    none = float(np.mean([formula is None for formula in stated]))
    return Scores(right, list(range(len(drawn))), {"no reading": none}, unread=none)


FORMALISER = Role(
    "formaliser",
    "share of English statements that are written as the formula that is meant",
    ("generate",),
    (_BED,),
    statements,
    readings,
    by_words,
)
