"""Programs as world models: called in batches; the result of a failed call is None."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from hunch.core import UsageError
from hunch.envs.design.running import TOTAL, box
from hunch.numbers import number
from hunch.rl.world_model import Prediction, frozen
from hunch.sandbox import ArgumentError, Program, ProgramError, ProgramTimeout

MOST = 20_000
"""Maximum number of entries of the arrays in a state. A program can send millions quickly, and turning them
into tuples would take the caller long."""


class Patient:
    """A program that may fail; a failed call has the value None.

    After a time-out of a single call, the program is not called again, because each call might time out.
    After a time-out of a batch, it is called again with parts of the batch, because the machine may have been
    busy.

    Args:
        program: The program, in a sandbox; None if it could not be loaded, so that all calls fail.

    Attributes:
        failures: Number of failed calls so far.
    """

    def __init__(self, program: Program | None) -> None:
        self.program, self.failures, self.dead = program, 0, False

    @classmethod
    def load(cls, source: str, function: str, total: float = TOTAL) -> Self:
        """Load a function of a program, which may fail here even where it was loaded before.

        Args:
            source: The program.
            function: Name of the function.
            total: Time limit in seconds for all calls until :meth:`renew`, for a program that is slow and
                never hangs.
        """
        try:
            return cls(box().load(source, function, total=total))
        except ProgramError:
            return cls(None)

    def renew(self) -> None:
        """Begin to count the time of all calls anew."""
        if self.program is not None:
            self.program.renew()

    def close(self) -> None:
        """End the program's process."""
        if self.program is not None:
            self.program.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call the program with each tuple of arguments, in one batch."""
        if self.program is not None and not self.dead:
            try:
                return self.program.map(calls)
            except ProgramTimeout:
                # The first call alone shows whether the program ends at all; then the rest, in two halves.
                if len(calls) > 1:
                    half = len(calls) // 2 + 1
                    parts = (calls[:1], calls[1:half], calls[half:])
                    return [answer for part in parts for answer in self.map(part)]
                self.dead = True
            except (ProgramError, ArgumentError):  # the arguments may be its own earlier values
                if len(calls) > 1:  # one of them failed; the others may succeed
                    return [self.map([call])[0] for call in calls]
        self.failures += len(calls)
        return [None] * len(calls)


class ProgramModel(Patient):
    """A program's ``step(state, action)`` as a world model; all queries of a call form one batch.

    Nothing is predicted if the program fails or does not return (next state, reward, done).
    """

    def step(
        self, states: Sequence[Any], actions: Sequence[Any], rngs: Sequence[np.random.Generator] = ()
    ) -> list[Prediction]:
        """Return a prediction for each state and action, by calling the program, which is deterministic."""
        return [read(answer) for answer in self.map(list(zip(states, actions, strict=True)))]


def read(answer: Any) -> Prediction:
    """Return a program's result as a prediction; an empty one if it is not (next state, reward, done)."""
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        return Prediction()
    after, reward, done = answer[0], number(answer[1]), answer[2]
    if type(done) is not bool or reward is None:
        return Prediction()
    return Prediction(done, reward, state_or_none(after))


def state_or_none(value: Any) -> Any:
    """Return a program's result as a state; None if it is not a valid state, or its arrays are too large."""
    try:
        return None if value is None or _entries(value) > MOST else frozen(value)
    except UsageError:
        return None


def _entries(value: Any) -> int:
    """Return the number of entries of all arrays in a value; an empty row counts as one."""
    if isinstance(value, np.ndarray):
        return math.prod(n or 1 for n in value.shape)
    return sum(map(_entries, value)) if isinstance(value, list | tuple) else 0
