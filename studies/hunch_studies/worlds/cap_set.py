"""Cap sets: a program ranks the vectors from which a set without three in a line is grown (FunSearch)."""

from __future__ import annotations

import itertools

import numpy as np

from hunch.core import FloatArray, IntArray, UsageError
from hunch.envs.design.problem import DesignProblem, Trial
from hunch.envs.design.running import box
from hunch.sandbox import Program

KNOWN = {1: 2, 2: 4, 3: 9, 4: 20, 5: 45, 6: 112, 7: 236, 8: 512}
"""Sizes of the largest known cap sets; up to dimension 6 they are proven to be the largest."""
LARGEST = 8

ASK = "Write the function that gives a vector its priority."
TASK = (
    "Find a large cap set: vectors of {{0, 1, 2}}^{n} of which no three add up to zero modulo 3. Vectors are "
    "added greedily, the one of highest priority first, as long as the set stays a cap set. " + ASK
)
START = '''import numpy as np

def priority(element, n):
    """All vectors have the same priority."""
    return 0.0
'''
INTERFACE = f"""Interface:
- element: numpy array of n integers 0, 1 or 2, the vector.
- n: int, the dimension.
- Returns a float: the priority of the vector.

```python
{START}```"""


class CapSet(DesignProblem):
    """Write a priority function from which a large cap set grows.

    The fitness is the size of the set; the problem counts as solved at the largest known size.

    Args:
        n: The dimension, from 1 to 8; the 3^n vectors are ranked in one call.
        blank: Leave the task out of what a writer reads: the control that shows whether it reads the task.
        trials: See :class:`~hunch.envs.design.problem.DesignProblem`.
        render_mode: ``"ansi"`` or none.
    """

    version = "61b5959d3e483320"
    """Identifies stored trials. It changes with whatever changes the trial of a program."""

    def __init__(
        self, *, n: int = 4, blank: bool = False, trials: str = "", render_mode: str | None = None
    ) -> None:
        if not 1 <= n <= LARGEST:
            raise UsageError(f"The dimension of a cap set is from 1 to {LARGEST}, not {n}.")
        self.n = n
        super().__init__(
            task=ASK if blank else TASK.format(n=n),
            interface=INTERFACE,
            function="priority",
            parameters=("element", "n"),
            start=START,
            target=KNOWN[n],
            trials=trials,
            render_mode=render_mode,
        )

    def identity(self) -> str:
        """Version of the scoring, and dimension."""
        return f"{self.version} {self.n}"

    def ready(self) -> None:
        """Start the sandbox."""
        box()

    def opened(self, program: str) -> Program:
        """Return the program in the sandbox, ready to be called."""
        return box().load(program, "priority", returns=float, finite=False)

    def run(self, program: str, seed: int) -> Trial:
        """Rank all vectors in the sandbox, and grow the set outside it."""
        elements = np.array(list(itertools.product((0, 1, 2), repeat=self.n)))
        with self.opened(program) as priority:
            values = np.array(priority.map([(element, self.n) for element in elements]))
        if np.isnan(values).any():
            raise ValueError("a priority must be a number, not nan")
        size = len(grow(elements, values))
        return Trial(float(size), f"cap set of size {size}; known is {KNOWN[self.n]}.", (float(size),))


def grow(elements: IntArray, values: FloatArray) -> list[int]:
    """Take elements greedily by value, the first among equals, as long as no three are in a line.

    Args:
        elements: Shape (3^n, n), in counting order.
        values: Shape (3^n,).

    Returns:
        The indices of the elements taken.
    """
    powers = 3 ** np.arange(elements.shape[1] - 1, -1, -1)
    free = np.ones(len(elements), dtype=bool)
    taken: list[int] = []
    for place in np.argsort(-values, kind="stable").tolist():
        if free[place]:
            third = (-(elements[taken] + elements[place])) % 3 @ powers if taken else []
            free[third] = False
            free[place] = False
            taken.append(place)
    return taken
