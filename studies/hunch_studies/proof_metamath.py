"""Proofs for Metamath, an outside judge: ``metamath theorems.mm "verify proof *" exit``.

The database has twelve rules of natural deduction. A judgement ``|- G => A`` says that A follows from the
list G, in which a hypothesis is found from its end. A proof is written as it is given: where a part does not
fit, the step is written with ``false`` in the place of what is missing, and it is for Metamath to refuse it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hunch.envs.proofs.kernel import Term, hypotheses
from hunch.envs.proofs.logic import FALSE, Formula, Goal

DATABASE: Final = """\
$c |- wff ctx => ( ) -> & | false , emp $.
$v A B C G $.
cG $f ctx G $. wA $f wff A $. wB $f wff B $. wC $f wff C $.
wfalse $a wff false $.
wim $a wff ( A -> B ) $.
wan $a wff ( A & B ) $.
wor $a wff ( A | B ) $.
cemp $a ctx emp $.
cadd $a ctx G , A $.
last $a |- G , A => A $.
${ w1 $e |- G => A $. weak $a |- G , B => A $. $}
${ i1 $e |- G , A => B $. fun $a |- G => ( A -> B ) $. $}
${ a1 $e |- G => ( A -> B ) $. a2 $e |- G => A $. app $a |- G => B $. $}
${ p1 $e |- G => A $. p2 $e |- G => B $. pair $a |- G => ( A & B ) $. $}
${ f1 $e |- G => ( A & B ) $. fst $a |- G => A $. $}
${ s1 $e |- G => ( A & B ) $. snd $a |- G => B $. $}
${ l1 $e |- G => A $. inl $a |- G => ( A | B ) $. $}
${ r1 $e |- G => B $. inr $a |- G => ( A | B ) $. $}
${ c1 $e |- G => ( A | B ) $. c2 $e |- G , A => C $. c3 $e |- G , B => C $. case $a |- G => C $. $}
${ x1 $e |- G => false $. absurd $a |- G => A $. $}
${ t1 $e |- G => A $. t2 $e |- G , A => B $. let $a |- G => B $. $}
"""
_LABELS: Final = {"->": "wim", "&": "wan", "|": "wor"}
Known = Sequence[tuple[str, Formula]]
"""The hypotheses with their names, in order."""


class UnwritableError(ValueError):
    """A proof uses a name that nothing binds, or a part of it needs a statement that it does not have."""


def database(theorems: Mapping[str, tuple[Goal, Term]]) -> str:
    """Return a Metamath database with theorems by label, each with a proof.

    Raises:
        UnwritableError: if a step cannot be stated.
    """
    atoms = sorted({atom for goal, _ in theorems.values() for atom in goal.atoms})
    declared = [f"$v a_{atom} $. w_{atom} $f wff a_{atom} $." for atom in atoms]
    return "\n".join([DATABASE, *declared, *(_theorem(label, *own) for label, own in theorems.items()), ""])


def _theorem(label: str, goal: Goal, proof: Term) -> str:
    known = tuple(hypotheses(goal).items())
    stated = " ".join(["emp", *(f", {_wff(formula)}" for _, formula in known)])
    steps = " ".join(_proof(known, proof, goal.conclusion))
    return f"{label} $p |- {stated} => {_wff(goal.conclusion)} $= {steps} $."


def _wff(formula: Formula) -> str:
    if not formula.parts:
        return "false" if formula == FALSE else f"a_{formula.op}"
    left, right = map(_wff, formula.parts)
    return f"( {left} {formula.op} {right} )"


def _syntax(formula: Formula) -> Iterator[str]:
    """Labels that build a formula."""
    for part in formula.parts:
        yield from _syntax(part)
    yield "wfalse" if formula == FALSE else _LABELS.get(formula.op) or f"w_{formula.op}"


def _context(known: Known) -> Iterator[str]:
    """Labels that build a list of hypotheses."""
    yield "cemp"
    for _, formula in known:
        yield from _syntax(formula)
        yield "cadd"


def _parts(formula: Formula, op: str) -> tuple[Formula, Formula]:
    return (formula.parts[0], formula.parts[1]) if formula.op == op else (FALSE, FALSE)


def _variable(known: Known, name: str) -> Iterator[str]:
    """A hypothesis: the last one, or by weakening."""
    if not known:
        raise UnwritableError(f"Nothing binds {name!r}.")
    (last, formula), rest = known[-1], known[:-1]
    if last == name:
        yield from (*_context(rest), *_syntax(formula), "last")
        return
    yield from (*_context(rest), *_syntax(_shown(rest, name)), *_syntax(formula))
    yield from (*_variable(rest, name), "weak")


def _shown(known: Known, term: Term) -> Formula:
    """Return what a term seems to prove."""
    match term:
        case str() if term in dict(known):
            return dict(known)[term]
        case ("app", source, _):
            return _parts(_shown(known, source), "->")[1]
        case ("fst", source):
            return _parts(_shown(known, source), "&")[0]
        case ("snd", source):
            return _parts(_shown(known, source), "&")[1]
    raise UnwritableError(f"What {term!r} proves cannot be told.")


def _proof(known: Known, term: Term, wanted: Formula) -> Iterator[str]:
    """Labels of a proof of ``wanted`` by a term: the parts of each rule's variables, its premises, the rule.

    Metamath's order of variables is that of their declaration: G, A, B, C.
    """
    context = tuple(_context(known))
    match term:
        case str():
            yield from _variable(known, term)
        case ("fun", str(name), body):
            left, right = _parts(wanted, "->")
            yield from (*context, *_syntax(left), *_syntax(right))
            yield from _proof((*known, (name, left)), body, right)
        case ("app", source, argument):
            shown = _shown(known, source)
            left, right = _parts(shown, "->")
            yield from (*context, *_syntax(left), *_syntax(right))
            yield from (*_proof(known, source, shown), *_proof(known, argument, left))
        case ("pair", one, other):
            left, right = _parts(wanted, "&")
            yield from (*context, *_syntax(left), *_syntax(right))
            yield from (*_proof(known, one, left), *_proof(known, other, right))
        case ("fst" | "snd", source):
            shown = _shown(known, source)
            left, right = _parts(shown, "&")
            yield from (*context, *_syntax(left), *_syntax(right), *_proof(known, source, shown))
        case ("inl" | "inr", part):
            left, right = _parts(wanted, "|")
            yield from (*context, *_syntax(left), *_syntax(right))
            yield from _proof(known, part, left if term[0] == "inl" else right)
        case ("case", source, str(x), one, str(y), other):
            shown = _shown(known, source)
            left, right = _parts(shown, "|")
            yield from (*context, *_syntax(left), *_syntax(right), *_syntax(wanted))
            yield from _proof(known, source, shown)
            yield from _proof((*known, (x, left)), one, wanted)
            yield from _proof((*known, (y, right)), other, wanted)
        case ("absurd", source):
            yield from (*context, *_syntax(wanted), *_proof(known, source, FALSE))
        case ("let", str(name), source, body):
            shown = _shown(known, source)
            yield from (*context, *_syntax(shown), *_syntax(wanted), *_proof(known, source, shown))
            yield from _proof((*known, (name, shown)), body, wanted)
        case _:
            raise UnwritableError(f"There is no rule {term!r}.")
    if not isinstance(term, str):
        yield str(term[0])
