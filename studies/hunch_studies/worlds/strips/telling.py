"""Texts of a grounded problem, prepared once, so that each state is composed from ready pieces."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from hunch_studies.worlds.strips.grounding import Ground, Operator
from hunch_studies.worlds.strips.pddl import Atom
from hunch_studies.worlds.strips.task import Task
from hunch_studies.worlds.strips.wording import Wording, listed


class Telling:
    """The texts of the states and actions of problems with the same objects.

    Args:
        ground: Their actions and facts.
        wording: The wording.
        constant: Facts that are always true.

    Attributes:
        labels: The words for each operator, by its number.
        operators: The operators by their words.
    """

    def __init__(self, ground: Ground, wording: Wording, constant: Iterable[Atom]) -> None:
        self.labels = tuple(wording.action(operator.atom) for operator in ground.operators)
        self.operators = dict(zip(self.labels, ground.operators, strict=True))
        if len(self.operators) < len(self.labels):
            # The words leave out the difference between two actions, so all are written as in PDDL.
            self.labels = tuple(" ".join(operator.atom) for operator in ground.operators)
            self.operators = dict(zip(self.labels, ground.operators, strict=True))
        self._always = 1 << len(ground.facts)
        bits = {**dict.fromkeys(constant, self._always), **{fact: 1 << i for fact, i in ground.index.items()}}
        ordered = sorted(bits, key=wording.place)
        self._pieces = [(bits[atom], text) for atom in ordered if (text := wording.fact(atom))]

    def state(self, state: int) -> str:
        """Return the text of a state."""
        state |= self._always
        facts = [text for bit, text in self._pieces if state & bit]
        return f"Now {listed(facts)}." if facts else "Now nothing is true."

    def actions(self, operators: Iterable[Operator]) -> tuple[str, ...]:
        """Return the texts of operators."""
        labels = self.labels
        return tuple([labels[operator.number] for operator in operators])


@lru_cache(maxsize=64)
def _shared(ground: Ground, wording: Wording, constant: frozenset[Atom]) -> Telling:
    return Telling(ground, wording, constant)


def telling(task: Task, wording: Wording) -> Telling:
    """Return the texts for a task; tasks with the same objects and static facts share them."""
    return _shared(task.ground, wording, task.constant)
