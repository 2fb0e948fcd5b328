"""Theorems to prove: random ones in pools that share none, and textbook families.

A random statement is kept if it is a theorem, if its hypotheses do not contradict each other, and if it is
none without one of them, for two of them at least. Otherwise many proofs would be of the kind "from false,
anything", or of one step. Statements that differ by the names of atoms only are one: each is written in its
canonical form. A hash of that form decides whether it is for training or held out, so no pool for training,
of any seed, shares a theorem with one that is held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import groupby, permutations, product
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from hunch.envs.proofs.logic import FALSE, Formula, Goal, implies, read
from hunch_studies.worlds.proofs.decide import witness

Pool: TypeAlias = Literal["easy", "hard", "mixed", "large", "textbook"]


class Size(NamedTuple):
    """Size of random statements: hypotheses (from, to), atoms, connectives of a hypothesis."""

    hypotheses: tuple[int, int]
    atoms: int
    connectives: tuple[int, int] = (2, 5)


SIZES: Final[Mapping[str, Size]] = {
    "easy": Size((3, 5), 4, (1, 3)),
    "hard": Size((5, 8), 5),
    "large": Size((8, 12), 6),
}


def canonical(goal: Goal) -> Goal:
    """Return the goal with atoms named p, q, r ...: equal for goals that differ by names of atoms only."""
    kinds = {atom: _kind(goal, atom) for atom in goal.atoms}
    groups = [list(g) for _, g in groupby(sorted(kinds, key=lambda a: kinds[a]), key=lambda a: kinds[a])]
    orders = product(*(permutations(group) for group in groups))
    names = [dict(zip((a for group in order for a in group), _names(), strict=False)) for order in orders]
    return min(goal.renamed(name) for name in names)


def _kind(goal: Goal, atom: str) -> list[str]:
    """Return how an atom occurs, without the names of the others."""
    marks = {other: "this" if other == atom else "other" for other in goal.atoms}
    return [str(goal.conclusion.renamed(marks)), *sorted(str(f.renamed(marks)) for f in goal.hypotheses)]


def _names() -> Iterator[str]:
    """p, q, ... z, then p1, q1 and so on."""
    return (f"{letter}{n or ''}" for n in range(100) for letter in "pqrstuvwxyz")


# ---- random theorems --------------------------------------------------------------------------------------


def pool(kind: Pool, n: int, seed: int, *, held_out: bool = False) -> tuple[Goal, ...]:
    """Return different theorems, the same for the same arguments.

    Args:
        kind: Size of the statements; ``mixed`` is a third easy and the rest hard, in this order, and
            ``textbook`` has its own list.
        n: Number of theorems; at most, for ``textbook``.
        seed: Seed of what is drawn.
        held_out: Draw from the half of all theorems that is never trained on.
    """
    if kind == "textbook":
        return tuple(textbook().values())[:n]
    if kind == "mixed":
        easy = n // 3
        return _drawn("easy", easy, seed, held_out) + _drawn("hard", n - easy, seed, held_out)
    return _drawn(kind, n, seed, held_out)


@lru_cache(maxsize=64)
def _drawn(kind: str, n: int, seed: int, held_out: bool) -> tuple[Goal, ...]:
    rng = np.random.default_rng([seed, held_out, *kind.encode()])
    found: dict[Goal, None] = {}
    while len(found) < n:
        goal = random_goal(rng, SIZES[kind])
        if is_good(goal) and is_held_out(own := canonical(goal)) == held_out:
            found[own] = None
    return tuple(found)


def is_held_out(goal: Goal) -> bool:
    """Return whether a goal in canonical form belongs to the half that is held out."""
    return sha256(str(goal).encode()).digest()[0] % 2 == 1


def is_good(goal: Goal) -> bool:
    """Return whether a goal is a theorem that needs two hypotheses, which do not contradict each other."""
    known, wanted = goal
    if goal.closed or witness(goal) is not None or witness(Goal(known, FALSE)) is None:
        return False
    without = (Goal(tuple(other for other in known if other != h), wanted) for h in known)
    needed = (True for less in without if witness(less) is not None)
    return next(needed, False) and next(needed, False)


def random_goal(rng: np.random.Generator, size: Size) -> Goal:
    """Return a random statement."""
    names = [name for name, _ in zip(_names(), range(size.atoms), strict=False)]
    low, high = size.hypotheses
    least, most = size.connectives

    def formula(fewest: int) -> Formula:
        return random_formula(rng, names, int(rng.integers(fewest, most + 1)))

    hypotheses = [formula(least) for _ in range(int(rng.integers(low, high + 1)))]
    return Goal.of(hypotheses, formula(0))


def random_formula(rng: np.random.Generator, names: list[str], connectives: int) -> Formula:
    """Return a random formula of a size; three of five connectives are implications."""
    if not connectives:
        return Formula(names[int(rng.integers(len(names)))])
    if rng.random() < 0.1:
        return implies(random_formula(rng, names, connectives - 1), FALSE)
    left = int(rng.integers(connectives))
    op = ("->", "->", "->", "&", "|")[int(rng.integers(5))]
    parts = (left, connectives - 1 - left)
    return Formula(op, tuple(random_formula(rng, names, part) for part in parts))


def textbook() -> dict[str, Goal]:
    """Return textbook theorems by name: short ones, and the smallest of families that are used to compare
    provers.
    """
    lines = Path(__file__).with_name("textbook.txt").read_text(encoding="utf-8").splitlines()
    return {name: read(text) for name, _, text in (line.partition(": ") for line in lines)}
