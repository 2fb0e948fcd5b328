"""Statements in English: unambiguous sentences, because every connective begins with a different word."""

from __future__ import annotations

from hunch.envs.proofs.logic import FALSE, Formula, Goal


def english(goal: Goal) -> str:
    """Return a statement in English."""
    given = [f"Suppose that {clause(formula)}." for formula in goal.hypotheses]
    return " ".join([*given, f"Show that {clause(goal.conclusion)}."])


def clause(formula: Formula) -> str:
    """Return a formula in English."""
    if not formula.parts:
        return "a contradiction holds" if formula == FALSE else f"{formula.op} holds"
    left, right = formula.parts
    if formula.op == "->" and right == FALSE:
        return f"it is not the case that {clause(left)}"
    first, middle = {"->": ("if", "then"), "&": ("both", "and"), "|": ("either", "or")}[formula.op]
    return f"{first} {clause(left)} {middle} {clause(right)}"
