"""Tasks in linear temporal logic, and what remains of a task after each step.

Progression (Bacchus and Kabanza, Artificial Intelligence 116, 2000) rewrites a formula, given what holds now,
into the formula that must hold from the next step on; true means done, false means lost. The resulting
formulas are the states of the task's automaton. A task must be achievable in finite time (co-safe):
propositions and their negations, ``&``, ``|``, ``X`` next, ``F`` eventually, ``U`` until.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

from hunch.core import UsageError

Formula: TypeAlias = tuple[Any, ...]
"""An operator and its arguments; the arguments of ``&`` and ``|`` are sorted and distinct."""
TRUE: Final[Formula] = ("true",)
FALSE: Final[Formula] = ("false",)
MOST: Final = 500
"""Maximum number of formulas in the automaton of a task (ours)."""
_TOKEN: Final = re.compile(r"\s*([A-Za-z_]\w*|[!&|()])")


def progress(f: Formula, labels: Collection[str]) -> Formula:
    """Return what must hold from the next step on, if exactly these propositions hold now."""
    match f:
        case ("is", name):
            return TRUE if name in labels else FALSE
        case ("not", name):
            return FALSE if name in labels else TRUE
        case ("X", g):
            return tuple(g)
        case ("F", g):
            return any_of((progress(g, labels), f))
        case ("U", g, h):
            return any_of((progress(h, labels), all_of((progress(g, labels), f))))
        case ("&", *parts):
            return all_of(progress(g, labels) for g in parts)
        case ("|", *parts):
            return any_of(progress(g, labels) for g in parts)
    return f


def all_of(parts: Iterable[Formula]) -> Formula:
    """Return the conjunction of formulas."""
    return _join("&", parts, TRUE, FALSE)


def any_of(parts: Iterable[Formula]) -> Formula:
    """Return the disjunction of formulas."""
    return _join("|", parts, FALSE, TRUE)


def _join(operator: str, parts: Iterable[Formula], neutral: Formula, decisive: Formula) -> Formula:
    """Join formulas, without neutral parts and duplicates; a decisive part is the result."""
    flat = {g for f in parts for g in (f[1:] if f[0] == operator else (f,))} - {neutral}
    if decisive in flat:
        return decisive
    return (operator, *sorted(flat, key=_order)) if len(flat) > 1 else next(iter(flat), neutral)


def propositions(f: Formula) -> tuple[str, ...]:
    """Return the propositions of a formula in the order in which they are written."""
    if f[0] in ("is", "not"):
        return (f[1],)
    return tuple(dict.fromkeys(name for g in f[1:] for name in propositions(g)))


def swapped(f: Formula, names: Mapping[str, str]) -> Formula:
    """Return the formula with renamed propositions."""
    if f[0] in ("is", "not"):
        return (f[0], names.get(f[1], f[1]))
    parts = [swapped(g, names) for g in f[1:]]
    joined: dict[str, Callable[[Iterable[Formula]], Formula]] = {"&": all_of, "|": any_of}
    return joined[f[0]](parts) if f[0] in joined else (f[0], *parts)


@lru_cache(maxsize=4096)
def show(f: Formula) -> str:
    """Return the formula as text, in the notation that :func:`parse` reads."""
    match f:
        case ("is", name):
            return str(name)
        case ("not", name):
            return f"!{name}"
        case ("X" | "F" as operator, g):
            return f"{operator} {_inner(g)}"
        case ("U", g, h):
            return f"{_inner(g)} U {_inner(h)}"
        case ("&" | "|" as operator, *parts):
            return f" {operator} ".join(map(_inner, parts))
    return str(f[0])


def _inner(f: Formula) -> str:
    return f"({show(f)})" if f[0] in ("&", "|", "U") else show(f)


def _order(f: Formula) -> tuple[bool, str]:
    """Propositions first."""
    return f[0] not in ("is", "not"), show(f)


def parse(text: str) -> Formula:
    """Read a formula such as ``F (mug & F (kettle & F table))``; ``&`` binds most, then ``|``, then ``U``.

    Raises:
        UsageError: if the text is not a formula.
    """
    rest = text.rstrip()
    tokens = []
    while rest:
        match = _TOKEN.match(rest)
        if match is None:
            raise UsageError(f"{text!r} is not a task in temporal logic: what is {rest.strip()!r}?")
        tokens.append(match[1])
        rest = rest[match.end() :]
    return _Reader(text, tokens).read()


class _Reader:
    """Reads a formula from its tokens, with one method per operator."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self.text, self.tokens = text, tokens[::-1]

    def read(self) -> Formula:
        f = self.until()
        if self.tokens:
            raise self.wrong(f"what is {self.tokens[-1]!r} after {show(f)!r}?")
        return f

    def wrong(self, why: str) -> UsageError:
        return UsageError(f"{self.text!r} is not a task in temporal logic: {why}")

    def took(self, *tokens: str) -> str:
        return self.tokens.pop() if self.tokens and self.tokens[-1] in tokens else ""

    def until(self) -> Formula:
        f = self.joined("|")
        return ("U", f, self.until()) if self.took("U") else f

    def joined(self, operator: str) -> Formula:
        parts = [self.joined("&") if operator == "|" else self.single()]
        while self.took(operator):
            parts.append(self.joined("&") if operator == "|" else self.single())
        return (all_of if operator == "&" else any_of)(parts)

    def single(self) -> Formula:
        if operator := self.took("X", "F"):
            return (operator, self.single())
        if self.took("("):
            f = self.until()
            if not self.took(")"):
                raise self.wrong("a bracket is not closed.")
            return f
        negated = self.took("!")
        token = self.tokens.pop() if self.tokens else ""
        if token == "G":
            raise self.wrong("G (always) is never done; only tasks that end in finite time are allowed.")
        if token in ("true", "false") and not negated:
            return (token,)
        if not re.fullmatch(r"[A-Za-z_]\w*", token) or token in ("U", "X", "F", "true", "false"):
            raise self.wrong(f"a proposition is missing{f' before {token!r}' if token else ' at its end'}.")
        return ("not" if negated else "is", token)


@dataclass(frozen=True)
class Automaton:
    """The automaton of a task; at most one of the task's propositions holds per step.

    Attributes:
        start: The task itself.
        steps: For each formula, the next formula by proposition; "" stands for none of them.
    """

    start: Formula
    steps: Mapping[Formula, Mapping[str, Formula]] = field(repr=False)

    @classmethod
    def of(cls, task: Formula) -> Automaton:
        """Build the automaton of a task.

        Raises:
            UsageError: if the task is impossible, or has too many formulas.
        """
        labels = ("", *propositions(task))
        steps: dict[Formula, dict[str, Formula]] = {}
        waiting = [task]
        while waiting:
            f = waiting.pop()
            if f in steps:
                continue
            steps[f] = {label: progress(f, (label,)) for label in labels}
            waiting += steps[f].values()
            if len(steps) > MOST:
                raise UsageError(f"The task {show(task)!r} has more than {MOST} formulas: simplify it.")
        if TRUE not in steps:
            raise UsageError(f"The task {show(task)!r} is impossible: nothing leads to its end.")
        return cls(task, steps)

    @property
    def open(self) -> tuple[Formula, ...]:
        """The formulas that are neither done nor lost."""
        return tuple(f for f in self.steps if f not in (TRUE, FALSE))

    def after(self, f: Formula, label: str) -> Formula:
        """Return the formula after a label; a label that is not a proposition of the task counts as none."""
        next_formulas = self.steps[f]
        return next_formulas.get(label, next_formulas[""])
