"""Textbook families of theorems, of any size; Hunch's pool ``textbook`` holds the smallest of each.

The families are those by which provers of intuitionistic logic are compared: Raths, Otten and Kreitz, "The
ILTP Problem Library for Intuitionistic Logic", 2007.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

from hunch.envs.proofs.logic import Formula, Goal, implies


def both(left: Formula, right: Formula) -> Formula:
    """Return ``left & right``."""
    return Formula("&", (left, right))


def either(left: Formula, right: Formula) -> Formula:
    """Return ``left | right``."""
    return Formula("|", (left, right))


def iff(left: Formula, right: Formula) -> Formula:
    """Return ``left <-> right``."""
    return both(implies(left, right), implies(right, left))


def _joined(op: Callable[[Formula, Formula], Formula], parts: list[Formula]) -> Formula:
    *rest, last = parts
    for part in reversed(rest):
        last = op(part, last)
    return last


def _numbered(letter: str, n: int, first: int = 0) -> list[Formula]:
    return [Formula(f"{letter}{i}") for i in range(first, first + n)]


def de_bruijn(n: int) -> Goal:
    """With an odd number of atoms, if any two neighbours in a circle are equal, all hold: all hold."""
    atoms = _numbered("p", 2 * n + 1)
    every = _joined(both, atoms)
    pairs = zip(atoms, atoms[1:] + atoms[:1], strict=True)
    return Goal.of([implies(iff(one, other), every) for one, other in pairs], every)


def pigeons(n: int) -> Goal:
    """With n + 1 pigeons in n holes, two share a hole."""
    sits = [_numbered(f"o{pigeon}_", n) for pigeon in range(n + 1)]
    shared = [both(sits[i][hole], sits[j][hole]) for hole in range(n) for i in range(n + 1) for j in range(i)]
    return Goal.of([_joined(either, holes) for holes in sits], _joined(either, shared))


def contractions(n: int) -> Goal:
    """A proof that has to use its hypothesis n times."""
    atoms, f = _numbered("p", n), Formula("f")
    every, some = _joined(both, atoms), _joined(either, [implies(atom, f) for atom in atoms])
    return Goal.of([implies(either(every, some), f)], f)


def long_normal(n: int) -> Goal:
    """A proof whose normal form grows as 2^n."""
    atoms = _numbered("p", n + 1)
    steps = [implies(b, implies(b, a)) for a, b in pairwise(atoms)]
    return Goal.of([atoms[-1], *steps], atoms[0])


def korn_kreitz(n: int) -> Goal:
    """Nested implications that refute each other."""
    a, b, f = _numbered("a", n + 1), _numbered("b", n + 1), Formula("f")
    steps = [implies(implies(b[i], a[i + 1]), a[i]) for i in range(n)]
    return Goal.of([implies(a[0], f), implies(implies(b[n], b[0]), a[n]), *steps], f)


def equivalences(n: int) -> Goal:
    """A chain of equivalences, and the same backwards."""
    atoms = _numbered("a", n)
    forth, back = atoms[0], atoms[-1]
    for atom in atoms[1:]:
        forth = iff(forth, atom)
    for atom in reversed(atoms[:-1]):
        back = iff(atom, back)
    return Goal((), iff(forth, back))


FAMILIES: Final[tuple[Callable[[int], Goal], ...]] = (
    *(contractions, long_normal, korn_kreitz, equivalences, de_bruijn, pigeons),
)
