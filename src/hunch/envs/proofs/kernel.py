"""The kernel: whether a proof proves a statement. Nothing else is trusted.

A proof is a lambda term, and checking it is checking its type. As text it is an expression in parentheses:

    x                       a hypothesis: h1, h2 ... in the statement's order, or a name that the proof binds
    (fun x t)               a proof of A -> B: t proves B with x for A
    (app s t)               a proof of B from s for A -> B and t for A
    (pair t u)              a proof of A & B;  (fst s) and (snd s) take it apart
    (inl t)  (inr t)        a proof of A | B from one for A, or for B
    (case s x t y u)        a proof of C from s for A | B, from t with x for A, and from u with y for B
    (absurd s)              a proof of anything from s for false
    (let x s t)             a proof t that may use x for what s proves

The kernel knows what is to be proved by t and u, and by s in ``absurd``. What another s proves it finds: so
that s is a hypothesis, or takes one apart by ``app``, ``fst`` or ``snd``. This module imports only formulas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from hunch.core import HunchError
from hunch.envs.proofs.logic import FALSE, Formula, Goal

Term: TypeAlias = "str | tuple[Term, ...]"
"""A proof term: a name, or the name of a rule with its parts."""
Context: TypeAlias = Mapping[str, Formula]
MOST_DEPTH: Final = 200
"""Maximum nesting of rules."""
PARTS: Final = {"fun": 2, "app": 2, "pair": 2, "fst": 1, "snd": 1}
PARTS.update({"inl": 1, "inr": 1, "case": 5, "absurd": 1, "let": 3})
"""Number of parts of each rule."""

_BINDS: Final = {"fun": (1,), "let": (1,), "case": (2, 4)}


class ProofError(HunchError):
    """The text is no proof of the statement; the message says where and why."""


def check(goal: Goal, proof: Term | str) -> None:
    """Check a proof, given as a term or as text.

    Raises:
        ProofError: if the proof does not prove the goal.
    """
    term = read(proof) if isinstance(proof, str) else proof
    try:
        _proves(hypotheses(goal), term, goal.conclusion)
    except RecursionError:
        raise ProofError("The proof nests rules too deep.") from None


def accepts(goal: Goal, proof: Term | str) -> bool:
    """Return whether a proof proves the goal."""
    try:
        check(goal, proof)
    except ProofError:
        return False
    return True


def hypotheses(goal: Goal) -> dict[str, Formula]:
    """Return the hypotheses of a goal by name: h1, h2 and so on."""
    return {f"h{i}": formula for i, formula in enumerate(goal.hypotheses, 1)}


def _proves(known: Context, term: Term, wanted: Formula) -> None:
    """Check a term against a formula: introductions are read from the formula, eliminations from the term.

    Raises:
        ProofError: if the term does not prove it.
    """
    match term:
        case ("fun", str(name), body) if wanted.op == "->":
            _proves({**known, name: wanted.parts[0]}, body, wanted.parts[1])
        case ("pair", left, right) if wanted.op == "&":
            _proves(known, left, wanted.parts[0])
            _proves(known, right, wanted.parts[1])
        case ("inl", part) if wanted.op == "|":
            _proves(known, part, wanted.parts[0])
        case ("inr", part) if wanted.op == "|":
            _proves(known, part, wanted.parts[1])
        case ("case", source, str(x), left, str(y), right):
            one, other = _parts(known, source, "|")
            _proves({**known, x: one}, left, wanted)
            _proves({**known, y: other}, right, wanted)
        case ("absurd", source):
            _proves(known, source, FALSE)
        case ("let", str(name), source, body):
            _proves({**known, name: _type(known, source)}, body, wanted)
        case ("fun" | "pair" | "inl" | "inr", *_):
            raise ProofError(f"{written(term)} is no proof of {wanted}.")
        case _:
            if (shown := _type(known, term)) != wanted:
                raise ProofError(f"{written(term)} proves {shown} and not {wanted}.")


def _type(known: Context, term: Term) -> Formula:
    match term:
        case str():
            if term not in known:
                raise ProofError(f"There is no hypothesis {term!r} here.")
            return known[term]
        case ("app", source, argument):
            left, right = _parts(known, source, "->")
            _proves(known, argument, left)
            return right
        case ("fst", source):
            return _parts(known, source, "&")[0]
        case ("snd", source):
            return _parts(known, source, "&")[1]
    raise ProofError(f"What {written(term)} proves cannot be told here.")


def _parts(known: Context, term: Term, op: str) -> tuple[Formula, Formula]:
    shown = _type(known, term)
    if shown.op != op:
        raise ProofError(f"{written(term)} proves {shown}, which has no {op!r} to use.")
    left, right = shown.parts
    return left, right


# ---- text -------------------------------------------------------------------------------------------------


def written(term: Term) -> str:
    """Return a term as text."""
    return f"({' '.join(map(written, term))})" if isinstance(term, tuple) else str(term)


def read(text: str) -> Term:
    """Parse a proof.

    Raises:
        ProofError: if the text cannot be parsed; the message has the place.
    """
    if not text.strip():
        raise ProofError("There is no proof.")
    open_: list[tuple[int, list[Term]]] = [(0, [])]
    for match in re.finditer(r"\s*([()]|[^\s()]+)", text):
        token, place = match[1], match.start(1) + 1
        if len(open_) > MOST_DEPTH:
            raise ProofError(f"The proof nests rules more than {MOST_DEPTH} deep, at character {place}.")
        if token == "(":
            open_.append((place, []))
        elif token == ")":
            if len(open_) == 1:
                raise ProofError(f"There is a ')' too many at character {place}.")
            start, parts = open_.pop()
            open_[-1][1].append(_rule(parts, start))
        elif token.isidentifier() and token.isascii():
            open_[-1][1].append(token)
        else:
            raise ProofError(f"{token!r} at character {place} is no name.")
    if len(open_) > 1:
        raise ProofError(f"The '(' at character {open_[-1][0]} is not closed.")
    if len(open_[0][1]) != 1:
        raise ProofError(f"A proof is one expression, not {len(open_[0][1])}.")
    return open_[0][1][0]


def _rule(parts: list[Term], place: int) -> Term:
    name = parts[0] if parts else ""
    if not isinstance(name, str) or PARTS.get(name) != len(parts) - 1:
        rules = ", ".join(f"{rule} with {n}" for rule, n in PARTS.items())
        raise ProofError(f"At character {place} there is no rule with its parts; there are {rules}.")
    return tuple(parts)


def outline(proof: Term | str, depth: int = 0) -> str:
    """Return a proof as an indented tree: each line has a rule and the names that it binds."""
    term = read(proof) if isinstance(proof, str) and not depth else proof
    if isinstance(term, str) or all(isinstance(part, str) for part in term):
        return "  " * depth + written(term)
    bound = _BINDS.get(str(term[0]), ())
    line = " ".join(map(written, (term[0], *(term[i] for i in bound))))
    below = [outline(part, depth + 1) for i, part in enumerate(term) if i and i not in bound]
    return "\n".join(["  " * depth + line, *below])
