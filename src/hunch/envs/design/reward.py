"""Rewards that a program computes: checks their values, and describes a training with them in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from hunch.core import FloatArray
from hunch.envs.design.code import flaw, parameters_of
from hunch.envs.design.inner import Steps
from hunch.envs.design.running import TOTAL, box
from hunch.sandbox import Program
from hunch.sandbox.errors import printable

COMPONENTS, LARGEST = 50, 1e100
"""Maximum number of components of a reward, and maximum absolute value of a component."""
SECONDS = 30.0
"""Time limit in seconds per generation; large, so that no program fails because the machine is busy."""
OF_EACH_STEP: Final = """

def _of_each_step(*columns):
    import numbers
    import numpy
    # With NumPy's whole numbers, neither -(n == 5) nor 10 ** -n can be computed, and small types wrap around.
    columns = [each.astype(numpy.int64) if each.dtype.kind in "iu" else each for each in columns]
    columns = [each.tolist() if each.ndim == 1 and each.dtype.kind == "i" else each for each in columns]
    rewards = []
    for step in zip(*columns):
        value = reward(*step)
        # A term of an action that is an array of one number makes the value one.
        is_single = isinstance(value, numpy.ndarray) and value.size == 1
        number = value.item() if is_single else value
        if not isinstance(number, (numbers.Real, numpy.bool_)):
            raise TypeError(f"reward returned {type(value).__name__}, and not one number")
        rewards.append(float(number))
    total = numpy.array(rewards)
    return total, {"reward": total}
"""
"""Follows a program that computes the reward of one step, and calls it for many."""


@dataclass(frozen=True)
class Form:
    """A reward program in one of its two forms, as it is loaded into the sandbox.

    A program of many steps is called with all of them at once, and returns total and components. One of a
    single step, as a plain request asks for, is called with one step at a time, and returns a number.

    Attributes:
        source: The program, and what calls it step by step.
        function: The function that is called.
        names: The variables of a step that it gets, in order.
    """

    source: str
    function: str
    names: tuple[str, ...]


def form_of(program: str, together: tuple[str, ...], alone: tuple[str, ...]) -> Form:
    """Return the form of a reward program.

    Where a program can be called either way, as ``reward(observation, action, weight=0.1)`` can, the names of
    its parameters with defaults decide: they are its own, or the last variables of many steps.

    Args:
        program: A program without a flaw in one of the forms.
        together: The variables of a step that a program of many steps gets, in order.
        alone: Those that a program of a single step gets, fewer.
    """
    if not flaw(program, "reward", together):
        named = parameters_of(program, "reward")[len(alone) :]
        if flaw(program, "reward", alone) or not named or set(named) & set(together):
            return Form(program, "reward", together)
    return Form(program + OF_EACH_STEP, "_of_each_step", alone)


@contextmanager
def loaded(
    program: str,
    together: tuple[str, ...],
    alone: tuple[str, ...],
    *,
    state: Literal["kept", "fresh"] = "fresh",
    total: float = TOTAL,
) -> Iterator[Reward]:
    """Load a reward program into the sandbox, in either of its forms.

    Args:
        program: A program without a flaw in one of the forms.
        together: The variables of a step that a program of many steps gets, in order.
        alone: Those that a program of a single step gets, fewer.
        state: Whether the program keeps its state between calls.
        total: Time limit in seconds for all calls.

    Raises:
        ProgramError: if the program cannot be loaded.
    """
    form = form_of(program, together, alone)
    with box(SECONDS).load(form.source, form.function, tuple, state=state, total=total) as written:
        yield Reward(written, form.names)


class Reward:
    """Runs a reward program, and checks the returned values."""

    def __init__(self, program: Program, names: tuple[str, ...]) -> None:
        self.program, self.names = program, names

    def __call__(self, steps: Steps) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the total, shape (n,), and the components of n steps.

        Raises:
            ProgramError, ValueError: if the program fails, or returns something else.
        """
        n = len(steps["action"])
        halves = [slice(0, n // 2), slice(n // 2, n)]  # two calls show whether values depend on earlier calls
        calls = [
            tuple(steps[name][half] for name in self.names) for half in (halves if n > 1 else halves[1:])
        ]
        parts = [
            self._checked(returned, len(call[0]))
            for returned, call in zip(self.program.map(calls), calls, strict=True)
        ]
        total = np.concatenate([part[0] for part in parts])
        common = set.intersection(*(set(part[1]) for part in parts))
        names = [name for name in parts[0][1] if name in common]
        return total, {name: np.concatenate([part[1][name] for part in parts]) for name in names}

    def _checked(self, returned: Any, n: int) -> tuple[FloatArray, dict[str, FloatArray]]:
        pair = isinstance(returned, tuple | list) and len(returned) == 2
        if not pair or not isinstance(returned[1], Mapping):
            raise ValueError("reward must return (total, components), components being a dict")
        if len(returned[1]) > COMPONENTS:
            raise ValueError(
                f"reward returned {len(returned[1]):,} components; at most {COMPONENTS} are shown"
            )
        named = {printable(str(name), 60): values for name, values in returned[1].items()}
        return _row("total", returned[0], n), {name: _row(name, values, n) for name, values in named.items()}


def _row(name: str, values: Any, n: int) -> FloatArray:
    row = np.asarray(values) if isinstance(values, (np.ndarray, float, int)) else None
    if row is None or row.shape not in ((n,), ()) or row.dtype.kind not in "iufb":
        shape = "no array" if row is None else f"of shape {row.shape} and type {row.dtype}"
        raise ValueError(f"{name} must be an array of shape (n,), and is {shape}")
    if (largest := np.abs(row.astype(float)).max(initial=0.0)) > LARGEST:
        raise ValueError(f"{name} is as large as {largest:.3g}; at most {LARGEST:g} can be added up")
    return np.broadcast_to(row.astype(float), (n,))


def table(
    metrics: Mapping[str, Sequence[float]], components: Sequence[Mapping[str, float]], points: Sequence[int]
) -> str:
    """Describe metrics and components at some points of a training as a table of numbers.

    Args:
        metrics: The task's metrics at these points.
        components: Mean values of the reward's components at each counted step of the training.
        points: The steps of the training that are shown.
    """
    rows = {name: list(values) for name, values in metrics.items()}
    for name in components[0]:
        # A program may name a component like the metric, which must not hide the metric.
        shown = f"{name} (a component)" if name in metrics else name
        rows[shown] = [components[i].get(name, 0.0) for i in points]
    lines = [f"Mean values at {len(points)} points of the training, then the largest, mean and least:"]
    for name, values in rows.items():
        row = ", ".join(f"{value:.3g}" for value in values)
        lines.append(
            f"{name}: {row}; max {max(values):.3g}, mean {np.mean(values):.3g}, min {min(values):.3g}"
        )
    return "\n".join(lines)
