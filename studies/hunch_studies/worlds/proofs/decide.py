"""Which statements of intuitionistic propositional logic are theorems, with a model of each that is none.

The calculus is G4ip, of which a failed search gives a model (Dyckhoff, "Contraction-free sequent calculi for
intuitionistic logic", 1992; Pinto and Dyckhoff, "Loop-free construction of counter-models for intuitionistic
propositional logic", 1995).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from hunch.envs.proofs.logic import FALSE, Formula, Goal, World, counter_model, implies


def witness(goal: Goal) -> World | None:
    """Return a model that refutes a goal, with one world if possible; None if the goal is a theorem."""
    return counter_model(goal, tries=0) or _refuted(frozenset(goal.hypotheses), goal.conclusion)


@lru_cache(maxsize=50_000)
def _refuted(known: frozenset[Formula], wanted: Formula) -> World | None:
    """Return the root of a model of ``known`` in which ``wanted`` does not hold; None if there is none."""
    if wanted in known or FALSE in known:
        return None
    if wanted.op == "->":
        return _refuted(known | {wanted.parts[0]}, wanted.parts[1])
    cases = None
    for formula in known:
        if (steps := _reduced(formula, known)) is not None:
            if len(steps) == 1:
                return _refuted(known - {formula} | steps[0], wanted)
            cases = formula, steps
    if wanted.op == "&":
        return _first(_refuted(known, part) for part in wanted.parts)
    if cases:
        return _first(_refuted(known - {cases[0]} | new, wanted) for new in cases[1])
    return _below(known, wanted)


def _reduced(formula: Formula, known: frozenset[Formula]) -> Sequence[frozenset[Formula]] | None:
    """Return what can replace a hypothesis: a set for each case; None if that may lose something."""
    if formula.op == "&":
        return [frozenset(formula.parts)]
    if formula.op == "|":
        return [frozenset({part}) for part in formula.parts]
    if formula.op != "->":
        return None
    (op, parts), right = formula.parts
    if formula.parts[0] == FALSE:
        return [frozenset()]
    if not parts:
        return [frozenset({right})] if formula.parts[0] in known else None
    if op == "&":
        return [frozenset({implies(parts[0], implies(parts[1], right))})]
    if op == "|":
        return [frozenset({implies(part, right) for part in parts})]
    return None


def _below(known: frozenset[Formula], wanted: Formula) -> World | None:
    """Join models above a new root, where each choice that may lose something has failed."""
    above = []
    for formula in known:
        if formula.op == "->" and formula.parts[0].parts:
            (left, middle), right = formula.parts[0].parts, formula.parts[1]
            rest = known - {formula}
            world = _refuted(rest | {left, implies(middle, right)}, middle)
            if world is None:
                return _refuted(rest | {right}, wanted)
            above.append(world)
    for part in wanted.parts:
        if (world := _refuted(known, part)) is None:
            return None
        above.append(world)
    return World(frozenset(formula.op for formula in known if not formula.parts), tuple(above))


def _first(worlds: Iterable[World | None]) -> World | None:
    return next((world for world in worlds if world is not None), None)
