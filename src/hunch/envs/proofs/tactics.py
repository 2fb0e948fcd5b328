"""Tactics: possible steps of a proof, the subgoals that they leave, and the resulting proof term.

    intro        assume the left side of an implication
    split        prove both sides of a conjunction
    left, right  prove one side of a disjunction
    cases h      use both sides of a conjunction, or prove the goal in both cases of a disjunction
    use h        prove the left side of an implication, then the goal with its right side

A goal is closed if nothing is left to prove: its conclusion, or ``false``, is a hypothesis. ``intro``,
``split`` and ``cases`` lose no provability; the others may lead to unprovable goals. ``use h`` keeps h
for its left side, so goals may recur, and a search must detect cycles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from hunch.envs.proofs import kernel
from hunch.envs.proofs.kernel import Term, hypotheses
from hunch.envs.proofs.logic import FALSE, Formula, Goal

if TYPE_CHECKING:
    from hunch.rl.and_or import Proof

SAFE: Final = ("intro", "split", "cases")
"""Tactics that keep a provable goal provable."""


class Tactic(NamedTuple):
    """A tactic, and the number of its hypothesis, if it uses one."""

    name: str
    hypothesis: Formula | None = None


def tactics(goal: Goal) -> list[tuple[Tactic, tuple[Goal, ...]]]:
    """Return the tactics of a goal with their subgoals: those of the conclusion first, then by hypothesis."""
    known, wanted = goal
    possible: list[tuple[Tactic, tuple[Goal, ...]]] = []
    if wanted.op == "->":
        possible.append((Tactic("intro"), (Goal.of((*known, wanted.parts[0]), wanted.parts[1]),)))
    elif wanted.op == "&":
        possible.append((Tactic("split"), tuple(Goal(known, part) for part in wanted.parts)))
    elif wanted.op == "|":
        names = zip(("left", "right"), wanted.parts, strict=True)
        possible += [(Tactic(name), (Goal(known, part),)) for name, part in names]
    for formula in known:
        rest = tuple(other for other in known if other != formula)
        if formula.op == "&":
            possible.append((Tactic("cases", formula), (Goal.of((*rest, *formula.parts), wanted),)))
        elif formula.op == "|":
            cases = tuple(Goal.of((*rest, part), wanted) for part in formula.parts)
            possible.append((Tactic("cases", formula), cases))
        elif formula.op == "->":
            left, right = formula.parts
            possible.append((Tactic("use", formula), (Goal(known, left), Goal.of((*rest, right), wanted))))
    return possible


def moves(goals: Sequence[Goal]) -> list[list[tuple[Tactic, tuple[Goal, ...]]]]:
    """Return the tactics of several goals for a search, with those subgoals that are not closed."""
    return [
        [(tactic, tuple(g for g in left if not g.closed)) for tactic, left in tactics(goal)] for goal in goals
    ]


def named(goal: Goal, tactic: Tactic) -> str:
    """Return the text of a tactic; a hypothesis is named by its position in the goal."""
    if tactic.hypothesis is None:
        return tactic.name
    return f"{tactic.name} h{goal.hypotheses.index(tactic.hypothesis) + 1}"


def shown(goal: Goal) -> str:
    """Return the goal as text for a reader, one line per hypothesis and conclusion."""
    lines = [f"{name}: {formula}" for name, formula in hypotheses(goal).items()]
    return "\n".join([*lines, f"Prove: {goal.conclusion}"])


def accepted(goal: Goal, proof: Proof | None) -> str:
    """Return the text of a proof that a search found, if the kernel accepts it; else an empty text."""
    written = term(goal, proof) if proof is not None or goal.closed else None
    return kernel.written(written) if written is not None and kernel.accepts(goal, written) else ""


def term(goal: Goal, proof: Proof | None) -> Term:
    """Return the proof term of a goal that is closed, or that a search proved.

    Raises:
        ValueError: if the proof belongs to another goal.
    """
    fresh = (f"x{i}" for i in count(1))

    def of(goal: Goal, proof: Proof | None, names: Mapping[Formula, str]) -> Term:
        if FALSE in names:
            return ("absurd", names[FALSE])
        if goal.conclusion in names:
            return names[goal.conclusion]
        if proof is None or proof.goal != goal:
            raise ValueError(f"There is no proof of {goal}.")
        taken: Tactic = proof.action
        left = next(subgoals for tactic, subgoals in tactics(goal) if tactic == taken)
        parts = iter(proof.parts)
        open_ = [None if subgoal.closed else next(parts) for subgoal in left]

        def sub(i: int, **new: Formula) -> Term:
            kept = {f: n for f, n in names.items() if f in left[i].hypotheses}
            return of(left[i], open_[i], kept | {f: n for n, f in new.items() if f not in kept})

        h = taken.hypothesis
        if h is None:
            if taken.name == "intro":
                x = next(fresh)
                return ("fun", x, sub(0, **{x: goal.conclusion.parts[0]}))
            rule = {"split": "pair", "left": "inl", "right": "inr"}[taken.name]
            return (rule, *(sub(i) for i in range(len(left))))
        x, y, (one, other) = next(fresh), next(fresh), h.parts
        if h.op == "->":
            return ("let", x, ("app", names[h], sub(0)), sub(1, **{x: other}))
        if h.op == "|":
            return ("case", names[h], x, sub(0, **{x: one}), y, sub(1, **{y: other}))
        return ("let", x, ("fst", names[h]), ("let", y, ("snd", names[h]), sub(0, **{x: one, y: other})))

    return of(goal, proof, {formula: name for name, formula in hypotheses(goal).items()})
