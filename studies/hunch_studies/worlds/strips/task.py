"""A grounded problem: start, goal, and the validation of plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hunch.core import UsageError
from hunch_studies.worlds.strips.grounding import Operator, bound, ground
from hunch_studies.worlds.strips.pddl import Action, Atom, Condition, Problem


class Verdict(NamedTuple):
    """The validation of a plan.

    Attributes:
        valid: True if every action applied and the goal held at the end.
        step: Index of the action that did not apply, from 0; the plan's length if all did.
        reason: Why it is not valid, in words; empty if it is.
        lacking: Atoms that should have been true, for that action or the goal.
        offending: Atoms that should have been false.
        state: The last state that was reached.
    """

    valid: bool
    step: int
    reason: str
    lacking: tuple[Atom, ...]
    offending: tuple[Atom, ...]
    state: int


class Task:
    """A problem whose actions are grounded, and whose states are integers.

    Args:
        problem: The problem.

    Attributes:
        problem: The problem.
        ground: Its actions and facts.
        init: The state at the start.
        goal: Facts that have to be true at the end.
        avoid: Facts that have to be false at the end.
        constant: Facts that are always true, because no action changes them.
        possible: False if the goal contains a fact that no action can reach.

    Raises:
        UsageError: if there are too many actions.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.ground = ground(problem)
        index = self.ground.index
        self.init = self.ground.bits(atom for atom in problem.init if atom in index)
        self.constant = frozenset(atom for atom in problem.init if atom not in index)
        goal = problem.goal
        self.goal = self.ground.bits(atom for atom in goal.positive if atom in index)
        self.avoid = self.ground.bits(atom for atom in goal.negative if atom in index)
        self.possible = (
            all(atom in index or atom in self.constant for atom in goal.positive)
            and not self.constant & set(goal.negative)
            and all(a == b for a, b in goal.equal)
            and all(a != b for a, b in goal.unequal)
        )

    def solved(self, state: int) -> bool:
        """Return whether the goal holds."""
        return state & self.goal == self.goal and not state & self.avoid and self.possible

    def applicable(self, state: int) -> list[Operator]:
        """Return the operators that apply in a state."""
        return self.ground.applicable(state)

    def holds(self, atom: Atom, state: int) -> bool:
        """Return whether an atom without variables is true in a state."""
        place = self.ground.index.get(atom)
        return atom in self.constant if place is None else bool(state >> place & 1)

    def true(self, state: int) -> frozenset[Atom]:
        """Return all facts that are true in a state."""
        return self.constant | {fact for i, fact in enumerate(self.ground.facts) if state >> i & 1}

    def verify(self, plan: Sequence[Atom]) -> Verdict:
        """Execute a plan from the start, and return whether it reaches the goal and, if not, why.

        Args:
            plan: Actions by name and objects. Unknown actions do not apply.
        """
        state = self.init
        for step, atom in enumerate(plan):
            operator = self.ground.by_atom.get(atom)
            if operator is None or state & operator.needs != operator.needs or state & operator.forbids:
                return self._failed(atom, step, state)
            state = operator.after(state)
        if self.solved(state):
            return Verdict(True, len(plan), "", (), (), state)
        lacking, offending = self._unmet(self.problem.goal, {}, state)
        return Verdict(False, len(plan), "the goal is not reached", lacking, offending, state)

    def _failed(self, atom: Atom, step: int, state: int) -> Verdict:
        try:
            action = self._action(atom)
        except UsageError as error:
            return Verdict(False, step, str(error), (), (), state)
        binding = dict(zip((name for name, _ in action.parameters), atom[1:], strict=True))
        unmet = self._unmet(action.condition, binding, state)
        return Verdict(False, step, f"({' '.join(atom)}) has an unmet precondition", *unmet, state)

    def _action(self, atom: Atom) -> Action:
        """The action that an atom names, if its objects fit."""
        shown = f"({' '.join(atom)})"
        action = self.problem.domain.actions.get(atom[0]) if atom else None
        if action is None:
            raise UsageError(f"{shown} is not an action of the domain")
        if len(atom) != len(action.parameters) + 1:
            raise UsageError(f"{shown} has {len(atom) - 1} objects and needs {len(action.parameters)}")
        for term, (_, types) in zip(atom[1:], action.parameters, strict=True):
            given = self.problem.objects.get(term)
            if given is None or not self.problem.domain.fits(given, types):
                raise UsageError(f"{shown} names {term}, which is no {' or '.join(types)} of the problem")
        return action

    def _unmet(
        self, condition: Condition, binding: dict[str, str], state: int
    ) -> tuple[tuple[Atom, ...], tuple[Atom, ...]]:
        """The atoms of a condition that are not true, and those that are and should not be."""
        positive = [bound(atom, binding) for atom in condition.positive]
        negative = [bound(atom, binding) for atom in condition.negative]
        return (
            tuple(atom for atom in positive if not self.holds(atom, state)),
            tuple(atom for atom in negative if self.holds(atom, state)),
        )
