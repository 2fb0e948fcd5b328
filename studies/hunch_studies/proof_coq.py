"""Proofs for Coq, a second outside judge: ``coqc theorems.v``."""

from __future__ import annotations

from collections.abc import Mapping

from hunch.envs.proofs.kernel import Term, hypotheses
from hunch.envs.proofs.logic import FALSE, Formula, Goal

_CONNECTIVES = {"->": "->", "&": "/\\", "|": "\\/"}


def script(theorems: Mapping[str, tuple[Goal, Term]]) -> str:
    """Return a file for Coq with theorems by name, each with a proof."""
    return "\n".join(_theorem(name, goal, proof) for name, (goal, proof) in theorems.items()) + "\n"


def _theorem(name: str, goal: Goal, proof: Term) -> str:
    given = "".join(f" (v_{h} : {_prop(formula)})" for h, formula in hypotheses(goal).items())
    atoms = "".join(f" (a_{atom} : Prop)" for atom in goal.atoms)
    return f"Definition {name}{atoms}{given} : {_prop(goal.conclusion)} := {_term(proof)}."


def _prop(formula: Formula) -> str:
    if not formula.parts:
        return "False" if formula == FALSE else f"a_{formula.op}"
    left, right = map(_prop, formula.parts)
    return f"({left} {_CONNECTIVES[formula.op]} {right})"


def _term(term: Term) -> str:
    if isinstance(term, str):
        return f"v_{term}"
    match term:
        case ("fun", str(x), body):
            return f"(fun v_{x} => {_term(body)})"
        case ("case", source, str(x), one, str(y), other):
            cases = f"or_introl v_{x} => {_term(one)} | or_intror v_{y} => {_term(other)}"
            return f"(match {_term(source)} with {cases} end)"
        case ("let", str(x), source, body):
            return f"(let v_{x} := {_term(source)} in {_term(body)})"
        case ("app", source, argument):
            return f"({_term(source)} {_term(argument)})"
        case ("absurd", source):
            return f"(False_ind _ {_term(source)})"
    rule, *parts = term
    names = {"pair": "conj", "fst": "proj1", "snd": "proj2", "inl": "or_introl", "inr": "or_intror"}
    return f"({names[str(rule)]} {' '.join(map(_term, parts))})"
