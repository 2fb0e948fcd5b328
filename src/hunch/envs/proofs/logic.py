"""Intuitionistic propositional logic: formulas, their text, and models.

A statement such as ``p -> q, ~q |- ~p`` says that the conclusion follows from the hypotheses. ``~p`` is short
for ``p -> false``, ``p <-> q`` for ``(p -> q) & (q -> p)``. A Kripke model in which the hypotheses hold and
the conclusion does not refutes it; one with a single world is an assignment of classical logic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

import numpy as np

from hunch.core import UsageError

MOST_ATOMS: Final = 8
"""Maximum number of atoms of a statement that is given as text."""
MOST_ROWS: Final = 10
"""Maximum number of atoms in a truth table; further atoms are false."""
MOST_DEPTH: Final = 100
"""Maximum nesting of formulas in a text."""


class Formula(NamedTuple):
    """An atom (a name without parts), ``false``, or two parts with a connective, ``->``, ``&`` or ``|``."""

    op: str
    parts: tuple[Formula, ...] = ()

    def __str__(self) -> str:
        """The text, which :func:`read` reads."""
        return _text(self, 0)

    @property
    def atoms(self) -> Iterator[str]:
        """Yield the names of the formula's atoms, from left to right, with repetitions."""
        if not self.parts and self != FALSE:
            yield self.op
        for part in self.parts:
            yield from part.atoms

    @property
    def size(self) -> int:
        """Number of connectives."""
        return sum(part.size for part in self.parts) + bool(self.parts)

    def renamed(self, names: Mapping[str, str]) -> Formula:
        """Return the formula with renamed atoms; atoms that are not in ``names`` stay."""
        parts = tuple(part.renamed(names) for part in self.parts)
        return Formula(self.op, parts) if parts else Formula(names.get(self.op, self.op))


FALSE: Final = Formula("false")


def implies(left: Formula, right: Formula) -> Formula:
    """Return ``left -> right``."""
    return Formula("->", (left, right))


class Goal(NamedTuple):
    """A statement to prove: the conclusion, and distinct, sorted hypotheses."""

    hypotheses: tuple[Formula, ...]
    conclusion: Formula

    @classmethod
    def of(cls, hypotheses: Iterable[Formula], conclusion: Formula) -> Goal:
        """Make a goal; the order of the hypotheses does not matter."""
        return cls(tuple(sorted(set(hypotheses))), conclusion)

    def __str__(self) -> str:
        """The statement as text, which :func:`read` reads."""
        return f"{', '.join(map(str, self.hypotheses))} |- {self.conclusion}".lstrip()

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The hypotheses and the conclusion."""
        return (*self.hypotheses, self.conclusion)

    @property
    def closed(self) -> bool:
        """True if the conclusion, or ``false``, is a hypothesis."""
        return self.conclusion in self.hypotheses or FALSE in self.hypotheses

    @property
    def atoms(self) -> tuple[str, ...]:
        """The names of the atoms, sorted."""
        return tuple(sorted({atom for formula in self.formulas for atom in formula.atoms}))

    def renamed(self, names: Mapping[str, str]) -> Goal:
        """Return the goal with renamed atoms."""
        return Goal.of((f.renamed(names) for f in self.hypotheses), self.conclusion.renamed(names))


# ---- text -------------------------------------------------------------------------------------------------

_TOKEN: Final = re.compile(r"\s*(?:(<->|->|\|-|[&|~(),]|[A-Za-z_]\w*)|$)", re.ASCII)
_BINDS: Final[Mapping[str, int]] = {"<->": 1, "->": 2, "|": 3, "&": 4}


def _text(formula: Formula, level: int) -> str:
    """Write a formula; parentheses where it binds weaker than ``level``."""
    if not formula.parts:
        return formula.op
    left, right = formula.parts
    if formula.op == "->" and right == FALSE:
        return f"~{_text(left, 5)}"
    binding = _BINDS[formula.op]
    text = f"{_text(left, binding + 1)} {formula.op} {_text(right, binding)}"
    return f"({text})" if binding < level else text


def read(text: str, most: int = MOST_ATOMS) -> Goal:
    """Parse a statement; ``p -> q |- r`` with hypotheses, or a formula alone.

    Args:
        text: The statement.
        most: Maximum number of atoms.

    Raises:
        UsageError: if the text cannot be parsed (the message has the place), or has too many atoms.
    """
    goal = _Reader(text).statement()
    if len(goal.atoms) > most:
        raise UsageError(f"The statement has {len(goal.atoms)} atoms; {most} are allowed.")
    return goal


class _Reader:
    """Reads a statement by recursive descent; all connectives associate to the right."""

    def __init__(self, text: str) -> None:
        self.text, self.place, self.depth = text, 0, 0
        self.token, self.end = "", 0
        self._next()

    def statement(self) -> Goal:
        formulas = [] if self.token == "|-" else [self.formula()]
        while self.token == "," and formulas:
            self._next()
            formulas.append(self.formula())
        if self.token == "|-":
            self._next()
            goal = Goal.of(formulas, self.formula())
        elif len(formulas) == 1:
            goal = Goal((), formulas[0])
        else:
            self._fail("'|-' and a conclusion")
        if self.token:
            self._fail("a connective or the end")
        return goal

    def formula(self, level: int = 1) -> Formula:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise UsageError(f"The statement nests formulas more than {MOST_DEPTH} deep.")
        left = self._simple()
        while (binds := _BINDS.get(self.token, 0)) >= level:
            op = self.token
            self._next()
            right = self.formula(binds)
            both = implies(left, right), implies(right, left)
            left = Formula("&", both) if op == "<->" else Formula(op, (left, right))
        self.depth -= 1
        return left

    def _simple(self) -> Formula:
        if self.token == "~":
            self._next()
            return implies(self.formula(5), FALSE)
        if self.token == "(":
            self._next()
            inner = self.formula()
            if self.token != ")":
                self._fail("')'")
            self._next()
            return inner
        if not re.match(r"[A-Za-z_]", self.token):
            self._fail("a formula")
        name = self.token
        self._next()
        return Formula(name)

    def _next(self) -> None:
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            rest = self.text[self.end :].lstrip()
            self.place, self.token = len(self.text) - len(rest), rest[:1]
            self._fail("a formula or connective")
        self.token, self.end = match[1] or "", match.end()
        self.place = self.end - len(self.token)

    def _fail(self, wanted: str) -> NoReturn:
        seen = repr(self.token) if self.token else "the end"
        raise UsageError(
            f"The statement {self.text!r} cannot be parsed: at character {self.place + 1} there is {seen} "
            f"instead of {wanted}."
        )


# ---- models -----------------------------------------------------------------------------------------------


class World(NamedTuple):
    """A world of a Kripke model: the atoms that hold in it, and the worlds directly above it."""

    true: frozenset[str]
    above: tuple[World, ...] = ()

    def forces(self, formula: Formula) -> bool:
        """Return whether a formula holds in this world."""
        if formula == FALSE:
            return False
        if not formula.parts:
            return formula.op in self.true
        left, right = formula.parts
        if formula.op == "&":
            return self.forces(left) and self.forces(right)
        if formula.op == "|":
            return self.forces(left) or self.forces(right)
        return (not self.forces(left) or self.forces(right)) and all(w.forces(formula) for w in self.above)

    def refutes(self, goal: Goal) -> bool:
        """Return whether the hypotheses hold in this world, and the conclusion does not."""
        return all(map(self.forces, goal.hypotheses)) and not self.forces(goal.conclusion)

    def __str__(self) -> str:
        """The model in words; worlds above a world are in brackets."""
        true_atoms = ", ".join(sorted(self.true)) or "nothing"
        return f"{true_atoms} [{'; '.join(map(str, self.above))}]" if self.above else true_atoms


def _assignment(goal: Goal) -> World | None:
    """Return an assignment that refutes a goal: row by row of its truth table, as bits of whole numbers."""
    atoms = goal.atoms[:MOST_ROWS]
    rows = 1 << len(atoms)
    every, left = (1 << rows) - 1, (1 << rows) - 1
    bits = {a: sum(1 << row for row in range(rows) if row >> i & 1) for i, a in enumerate(atoms)}

    def true(formula: Formula) -> int:
        if not formula.parts:
            return bits.get(formula.op, 0)
        one, other = map(true, formula.parts)
        return {"&": one & other, "|": one | other}.get(formula.op, every & ~one | other)

    for formula in goal.hypotheses:
        left &= true(formula)
    left &= ~true(goal.conclusion)
    if not left:
        return None
    row = (left & -left).bit_length() - 1
    return World(frozenset(a for i, a in enumerate(atoms) if row >> i & 1))


def counter_model(goal: Goal, tries: int = 50) -> World | None:
    """Return a model that refutes a goal: an assignment, or one of some random models of up to four worlds.

    The search may miss models, so None does not mean that the goal is a theorem.
    """
    if (assignment := _assignment(goal)) is not None:
        return assignment
    rng = np.random.default_rng(tries)
    worlds = (_random_world(rng, goal.atoms, frozenset(), 3) for _ in range(tries))
    return next((world for world in worlds if world.refutes(goal)), None)


def _random_world(rng: np.random.Generator, atoms: Sequence[str], true: frozenset[str], most: int) -> World:
    true_here = true | {atom for atom in atoms if rng.random() < 0.3}
    n = int(rng.integers(most + 1))
    return World(true_here, tuple(_random_world(rng, atoms, true_here, (most - n) // 2) for _ in range(n)))
