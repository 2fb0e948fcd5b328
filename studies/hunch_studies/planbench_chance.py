"""What planners that know nothing, or names only, achieve on problems whose plans by models were recorded.

Both walk through the problem, one applicable action after the other, into states where they were not before
if they can, and stop as soon as the goal holds. Models get neither the list of actions nor such a stop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hunch_studies.recordings.planbench import Answer, Recording
from hunch_studies.worlds.strips.grounding import Operator
from hunch_studies.worlds.strips.task import Task

PATIENCE: Final = 2
"""Actions of a walk, as a multiple of those of the authors' solution."""
Weigh = Callable[[Task, Operator], float]


def alike(task: Task, operator: Operator) -> float:
    """Return the largest number of objects that an action shares with a fact of the goal."""
    named = set(operator.atom[1:])
    return max((len(named & set(fact[1:])) for fact in task.problem.goal.positive), default=0)


PLANNERS: Final[Mapping[str, Weigh]] = {
    "chance, among what applies": lambda task, operator: 0.0,
    "chance, among what shares most names with the goal": alike,
}


def walk(task: Task, weigh: Weigh, most: int, seed: int) -> bool:
    """Return whether a walk of at most so many actions reaches the goal; of equal weights, chance decides."""
    rng, state, before = np.random.default_rng(seed), task.init, {task.init}
    for _ in range(most):
        if task.solved(state) or not (every := task.applicable(state)):
            break
        new = [operator for operator in every if operator.after(state) not in before] or every
        weights = [weigh(task, operator) for operator in new]
        best = [operator for operator, own in zip(new, weights, strict=True) if own == max(weights)]
        state = best[int(rng.integers(len(best)))].after(state)
        before.add(state)
    return task.solved(state)


def walks(recording: Recording, answers: Sequence[Answer]) -> list[tuple[Recording, list[bool]]]:
    """Return for each of the planners whether it solves each problem to which the authors have a solution."""
    known = [answer for answer in answers if answer.truth]
    return [
        (
            replace(recording, model=name),
            [walk(Task(a.statement.problem), weigh, PATIENCE * len(a.truth), a.instance) for a in known],
        )
        for name, weigh in PLANNERS.items()
        if known
    ]
