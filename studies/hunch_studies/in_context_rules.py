"""Rules of programmers that learn within a lifetime: the references of the study of learning in context."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import ClassVar

import numpy as np

from hunch.core import State
from hunch.methods.in_context.lifetime import Lifetimes

Cell = tuple[int, int]
Counts = dict[str, tuple[int, float]]
"""How often each arm was pulled, and what it paid in all."""


class Random(Lifetimes):
    """Random play."""

    def act(self, states: Sequence[State]) -> list[str]:
        """Draw an action for each state."""
        return [state.options[int(self.rng.integers(len(state.options)))] for state in states]


class Sweep(Lifetimes):
    """Look at every cell once; after that, go back to the one that paid.

    Args:
        seed: Not used.
        size: Rows of the room.
    """

    targets: ClassVar[int] = 1
    """Cells that pay, one after the other; the last one pays again and again."""

    def __init__(self, seed: int, size: int = 7) -> None:
        super().__init__(seed)
        self.cells = [
            (r, c if r % 2 else size + 1 - c) for r in range(1, size + 1) for c in range(1, size + 1)
        ]

    def act(self, states: Sequence[State]) -> list[str]:
        """Move towards the cell that pays next, or the nearest one that is not known not to."""
        return [self._move(state) for state in states]

    def _move(self, state: State) -> str:
        here = cell(state.observation)
        paid, empty, found = self._known(state)
        unseen = [each for each in self.cells if each not in empty[found]] or [here]
        nearest = min(unseen, key=lambda each: abs(each[0] - here[0]) + abs(each[1] - here[1]))
        target = paid.get(found, nearest)
        down, right = target[0] - here[0], target[1] - here[1]
        if down:
            return "go down" if down > 0 else "go up"
        return "stay" if not right else "go right" if right > 0 else "go left"

    def _known(self, state: State) -> tuple[dict[int, Cell], list[set[Cell]], int]:
        """Return the cell of each target found, the cells that are none of it, and the targets of now."""
        lived = self.lived.get(state.stream, [])
        texts = [*(step.observation for step in lived[1:]), state.observation]
        paid, empty, found = dict[int, Cell](), [set[Cell]() for _ in range(self.targets)], 0
        for step, after in zip(lived, texts, strict=False):
            if step.last:  # what follows is the start of the next episode
                found = 0
            elif step.reward:
                paid[found] = cell(after)
                found = min(found + 1, self.targets - 1)
            else:
                empty[found].add(cell(after))
        empty[found].add(cell(state.observation))
        return paid, empty, found


class SweepTwice(Sweep):
    """The same for a key and its door."""

    targets = 2

    def __init__(self, seed: int) -> None:
        super().__init__(seed, size=5)


def cell(text: str) -> Cell:
    """Return the row and the column that an observation tells."""
    row, column = (int("".join(filter(str.isdigit, part))) for part in text.split(","))
    return row, column


class Bandits(Lifetimes):
    """A rule for bandits: it pulls the arm of the highest index."""

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose an arm for each state."""
        return [max(state.options, key=self._indices(state).__getitem__) for state in states]

    def _indices(self, state: State) -> dict[str, float]:
        counts = dict.fromkeys(state.options, (0, 0.0))
        for step in self.lived.get(state.stream, []):
            pulls, paid = counts[step.action]
            counts[step.action] = pulls + 1, paid + step.reward
        return {arm: self.index(*own, sum(n for n, _ in counts.values())) for arm, own in counts.items()}

    def index(self, pulls: int, paid: float, total: int) -> float:
        """Return the index of an arm from its pulls, what it paid, and the pulls of all arms."""
        raise NotImplementedError


class UCB(Bandits):
    """UCB1 of Auer et al., Machine Learning 2002."""

    def index(self, pulls: int, paid: float, total: int) -> float:
        """Return the upper confidence bound; arms that were never pulled come first."""
        return paid / pulls + sqrt(2 * log(total) / pulls) if pulls else np.inf


class Thompson(Bandits):
    """Thompson sampling for arms that pay 0 or 1, with uniform priors."""

    def index(self, pulls: int, paid: float, total: int) -> float:
        """Draw the arm's probability from its posterior."""
        return float(self.rng.beta(1 + paid, 1 + pulls - paid))
