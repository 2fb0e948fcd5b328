"""The corpus of statements: English sentences of propositional logic, and the formulas that they mean.

A document is one question of the formaliser, word for word (:func:`hunch.roles.formaliser.prompt`), and its
answer. The answer has every parenthesis, so that each of its tokens has one of the English: a connective with
the parentheses before it stands for the word between two clauses.

Statements are drawn at random and need not be theorems. No document has a statement that is held out in
``hunch/Proof-v0``, one of its textbook, or one of the audition, also not with other names of atoms.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from string import ascii_lowercase
from typing import Any, Final

import numpy as np

from hunch.envs.proofs.english import english
from hunch.envs.proofs.logic import FALSE, Formula, Goal
from hunch.roles.formaliser import prompt
from hunch_studies.laboratory import tokenizer
from hunch_studies.laboratory.corpus import Document, Piece
from hunch_studies.laboratory.tokenizer import END
from hunch_studies.worlds.proofs.theorems import SIZES, Size, canonical, is_held_out, random_goal, textbook

KINDS: Final = ("easy", "hard")
"""Sizes of statements for evaluation, of the half that is held out."""
HYPOTHESES: Final = 3
ATOMS: Final = 4
"""No statement of the audition has more hypotheses, or more atoms."""
FALSEHOODS: Final = 0.1
"""Share of statements in which an atom is taken for ``false``."""
CHARACTERS: Final = 4
"""Characters for which :mod:`hunch_studies.laboratory.batches` asks per token of a row."""


def document(seed: str, length: int, ease: float = 0.0, shape: str | None = None) -> Document:
    """Write a question and its answer.

    Args:
        seed: The same seed gives the same document.
        length: Room for the document: four times its tokens.
        ease: Ignored.
        shape: A size of statements, held out; None for a statement to train on.
    """
    rng = np.random.default_rng(list(seed.encode()))
    goal = unseen(rng, SIZES[shape]) if shape else drawn(rng, length // CHARACTERS)
    return [Piece(prompt(english(goal)), False), Piece(f"{symbols(goal)}{END}", True)]


def drawn(rng: np.random.Generator, room: int) -> Goal:
    """Return a statement to train on, with any letters as atoms, whose document fits into so many tokens."""
    least = room * rng.choice((0.0, 0.7, 0.7))
    while True:
        n, fewest = int(rng.integers(13)), int(rng.integers(3))
        goal = random_goal(rng, Size((n, n), int(rng.integers(2, 7)), (fewest, int(rng.integers(fewest, 6)))))
        if rng.random() < FALSEHOODS:
            goal = goal.renamed({goal.atoms[0]: FALSE.op})
        if least <= tokens(goal) <= room and is_for_training(goal):
            return goal.renamed(_names(rng, goal.atoms))


def unseen(rng: np.random.Generator, size: Size) -> Goal:
    """Return a statement of the half that is held out."""
    while not is_held_out(canonical(goal := random_goal(rng, size))):
        pass
    return goal


def is_for_training(goal: Goal) -> bool:
    """Return whether a statement is neither held out, nor of the textbook, nor one that the audition may ask.

    The audition changes a few theorems, which adds neither hypotheses nor atoms.
    """
    if len(goal.hypotheses) <= HYPOTHESES and len(goal.atoms) <= ATOMS:
        return False
    own = canonical(goal)
    return not is_held_out(own) and own not in _textbook()


@cache
def _textbook() -> frozenset[Goal]:
    return frozenset(map(canonical, textbook().values()))


def _names(rng: np.random.Generator, atoms: tuple[str, ...]) -> dict[str, str]:
    """Return other letters for atoms: from p on, or any."""
    letters = ascii_lowercase[15:] if rng.random() < 0.5 else ascii_lowercase
    return dict(zip(atoms, map(str, rng.permutation(list(letters))), strict=False))


def symbols(goal: Goal) -> str:
    """Write a statement with every parenthesis."""
    given = ", ".join(map(_text, goal.hypotheses))
    return f"{given} |- {_text(goal.conclusion)}"


def _text(formula: Formula) -> str:
    if not formula.parts:
        return formula.op
    left, right = formula.parts
    if formula.op == "->" and right == FALSE:
        return f"~{_text(left)}"
    return f"({_text(left)} {formula.op} {_text(right)})"


def tokens(goal: Goal) -> int:
    """Return the number of tokens of a document, or up to three more."""
    text = symbols(goal)
    return 4 + 2 * (text.count("(") + text.count("~") + 2 * len(re.findall(r"\w+", text)))


def phrases() -> list[str]:
    """Return the phrases of English and the symbols that are one token each."""
    ends = (" then ", " and ", " or ", ". Suppose that ", ". Show that ", ".\nSymbols: ")
    signs = (" -> ", " & ", " | ", ", ", " |- ", "")
    return [
        prompt("").removesuffix("\nSymbols: "),
        *("Suppose that ", "Show that ", "it is not the case that ", "if ", "both ", "either "),
        *("a contradiction", "false"),
        *(f" holds{end}" for end in ends),
        *(")" * n + sign for n, sign in product(range(7), signs) if n or sign),
    ]


def fit() -> Any:
    """Return a tokenizer of phrases and single characters."""
    whole = phrases()
    return tokenizer.fit([], ".", 257 + len(whole), whole)
