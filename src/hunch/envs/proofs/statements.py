"""Statements to prove, and variants of a statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hunch.envs.proofs.logic import Formula, Goal


@dataclass(frozen=True)
class Statements:
    """The statements of an environment: their texts, in order."""

    texts: tuple[str, ...]


def variants(goal: Goal, n: int, rng: np.random.Generator) -> list[Goal]:
    """Return n statements that differ from a goal by one to three changes; not all are theorems.

    A change drops a hypothesis, or replaces a part by another part of the statement or by another atom.
    """
    different: dict[Goal, None] = {}
    for _ in range(20 * n):
        changed = goal
        for _ in range(int(rng.integers(1, 4))):
            changed = _changed(changed, rng)
        if changed != goal and not changed.closed:
            different[changed] = None
        if len(different) == n:
            break
    return list(different)


def _changed(goal: Goal, rng: np.random.Generator) -> Goal:
    formulas = list(goal.formulas)
    i = int(rng.integers(len(formulas)))
    if i < len(formulas) - 1 and rng.random() < 0.3:
        return Goal.of(formulas[:i] + formulas[i + 1 : -1], goal.conclusion)
    old = list(_inside(formulas[i]))
    new = [part for formula in formulas for part in _inside(formula)]
    chosen = (parts[int(rng.integers(len(parts)))] for parts in (old, new))
    formulas[i] = _replaced(formulas[i], *chosen)
    return Goal.of(formulas[:-1], formulas[-1])


def _inside(formula: Formula) -> Iterator[Formula]:
    yield formula
    for part in formula.parts:
        yield from _inside(part)


def _replaced(formula: Formula, old: Formula, new: Formula) -> Formula:
    if formula == old:
        return new
    return Formula(formula.op, tuple(_replaced(part, old, new) for part in formula.parts))
