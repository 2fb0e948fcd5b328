"""World models as code from a file of recorded transitions, of any environment, with vectors as states."""

from __future__ import annotations

import gzip
import inspect
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import gymnasium as gym
import numpy as np

from hunch.core import UsageError
from hunch.envs.design.plain import plain_dynamics
from hunch.envs.design.policy import described
from hunch.envs.design.world_model import AS_CLASS, START, START_OF_CLASS, DynamicsCode, match, weights
from hunch.rl.world_model import Prediction, Step

MOST_BYTES: Final = 256 * 2**20
"""Largest file of transitions, unpacked."""
Form: TypeAlias = Literal["function", "class"]
"""What is to be written."""
FIELDS: Final = ("obs", "action", "reward", "next_obs", "done")


class Transitions(DynamicsCode):
    """Write the dynamics of an environment as code, from a file of its transitions.

    The fitness is that of :class:`~hunch.envs.design.world_model.WorldModelCode` (Dainese et al. 2024): next
    state, reward and end count a third each, every number of the next state in proportion, and every value of
    the reward has the same total weight. Numbers are equal within 1e-5, relative to the larger of 1 and the
    true value.

    Args:
        file: JSON lines, gzipped if the name ends in ``.gz``, one for each step: ``obs``, ``next_obs`` and
            ``action`` (each a number or a list of numbers), ``reward``, ``done``, and ``start``, which is
            true at the first step of an episode.
        base: Id of the Gymnasium environment whose text says what the numbers mean; empty for none.
        about: Text in its place.
        form: What is to be written: ``function``, ``step(state, action)``, or ``class``, the paper's
            ``Environment`` with ``set_state(state)`` and ``step(action)``.
        hold_out: Share of the episodes, the last ones, that is held out: from 0 to below 1.
        trials: See :class:`~hunch.envs.design.problem.DesignProblem`.
        render_mode: ``"ansi"`` or none.

    Attributes:
        ceiling: The highest fitness of a program. It is below 1 where transitions contradict each other, as
            in a random environment, or one in which ``done`` also marks a limit of steps.

    Raises:
        UsageError: if there is no such file, or it holds anything else.
    """

    version = "transitions-2"
    """Identifies stored trials. It changes with whatever changes the trial of a program."""

    def __init__(
        self,
        *,
        file: str = "",
        base: str = "",
        about: str = "",
        form: Form = "function",
        hold_out: float = 0.2,
        trials: str = "",
        render_mode: str | None = None,
    ) -> None:
        if not 0 <= hold_out < 1:
            raise UsageError(f"hold_out must be from 0 to below 1, not {hold_out!r}.")
        if form not in ("function", "class"):
            raise UsageError(f"form is function or class, not {form!r}.")
        self.form = form
        if not file:
            raise UsageError("Transitions are read from a file: name one with --env.file.")
        steps, starts = _read(Path(file).expanduser())
        # Whole episodes are held out, because the steps of an episode resemble each other.
        first_held_out = starts[min(len(starts) - 1, math.ceil((1 - hold_out) * len(starts)))]
        cut = first_held_out if hold_out and len(starts) > 1 else len(steps)
        self.buffer, self.held_out = steps[:cut], steps[cut:]
        self.vectors = isinstance(steps[0].state, tuple)
        self.ceiling = ceiling(self.buffer)
        doc, env = _documented(base)
        state = f"numpy array of {len(steps[0].state)} numbers" if self.vectors else "int"  # type: ignore[arg-type]
        first = steps[0]
        if form == "class":
            returns = (
                "- `Environment()` takes no arguments. Its method `set_state(state)` sets the state; then "
                "its method `step(action)` returns (next_state, reward, done): a state of the same form, a "
                "float, a bool. They must depend on the state that was set and on the action alone."
            )
        else:
            returns = (
                "- Returns (next_state, reward, done): a state of the same form, a float, a bool. It must "
                "depend on its arguments alone."
            )
        interface = (
            f"Interface:\n- state: {state}, such as {first.state!r}.\n"
            f"- action: {_kind(first.action)}, such as {first.action!r}.\n{returns}"
        )
        if env is not None:
            env.close()  # its spaces are still read
        name = base or Path(file).name
        super().__init__(
            task=f"Write the dynamics of the environment {name} as a program.",
            interface="\n\n".join(part for part in (interface, about or described(doc)) if part),
            function="step",
            parameters=("state", "action"),
            start=START if form == "function" else START_OF_CLASS,
            as_class=AS_CLASS if form == "class" else None,
            target=self.ceiling - 1e-9,  # a sum of weights is exact to its last digits only
            plain=plain_dynamics(name, doc, env, about, _kind(first.action)) if form == "function" else None,
            trials=trials,
            render_mode=render_mode,
        )

    def identity(self) -> str:
        """Return the version of the scoring, and the transitions."""
        form = "" if self.form == "function" else f"{self.form} "
        return f"{self.version} {form}{self.buffer} {self.held_out}"

    def arguments(self, step: Step) -> tuple[Any, Any]:
        """Return state and action; vectors as NumPy arrays."""
        return _array(step.state), _array(step.action)


def ceiling(steps: Sequence[Step]) -> float:
    """Return the highest fitness of a deterministic program: of contradicting steps it predicts one."""
    alike: dict[Any, list[int]] = {}
    for number, step in enumerate(steps):
        alike.setdefault((step.state, step.action), []).append(number)
    weight = weights(steps)
    total = 0.0
    for numbers in alike.values():
        # All outcomes that occur are tried; a mix of them could be higher by a part of one step.
        outcomes = {(steps[i].done, steps[i].reward, steps[i].next_state) for i in numbers}
        total += max(
            sum(weight[i] * match(Prediction(*outcome), steps[i]) for i in numbers) for outcome in outcomes
        )
    return float(total)


def _array(value: Any) -> Any:
    return np.array(value, dtype=float) if isinstance(value, tuple) else value


def _kind(action: Any) -> str:
    return f"numpy array of {len(action)} numbers" if isinstance(action, tuple) else "int"


def _documented(base: str) -> tuple[str, gym.Env[Any, Any] | None]:
    """Return the text of a Gymnasium environment and the environment; empty and None if none is named.

    Raises:
        UsageError: if there is no such environment, or it cannot be made.
    """
    if not base:
        return "", None
    try:
        env = gym.make(base)
    except (gym.error.Error, ImportError) as error:
        raise UsageError(f"The environment {base!r} cannot be made: {error} Leave --env.base out.") from None
    return inspect.getdoc(type(env.unwrapped)) or "", env


def _read(path: Path) -> tuple[list[Step], list[int]]:
    """Return the steps of a file, and the numbers of the first steps of its episodes.

    Raises:
        UsageError: if it holds anything else.
    """
    steps: list[Step] = []
    starts: list[int] = []
    for number, line in enumerate(_lines(path), 1):
        try:
            row = json.loads(line)
            step = _step(row)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"Line {number} of {path} is no transition: {error}.") from None
        first = steps[0] if steps else step
        lengths = [_form(step.state), _form(step.next_state), _form(step.action)]
        if lengths != [_form(first.state), _form(first.state), _form(first.action)]:
            raise UsageError(f"Line {number} of {path} has states or actions of another form than the first.")
        if row.get("start", False) or not steps:
            starts.append(len(steps))
        steps.append(step)
    if len(steps) < 2:
        raise UsageError(f"{path} holds {len(steps)} transitions; a world model needs two at least.")
    return steps, starts


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file that are not empty.

    Raises:
        UsageError: if it cannot be read, or is too large.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise UsageError(f"{path} holds more than {MOST_BYTES // 2**20} MB of transitions.")
        text = content.decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UsageError(f"The file of transitions {path} cannot be read: {error}.") from None
    yield from (line for line in text.split("\n") if line.strip())


def _step(row: Any) -> Step:
    """Return a line as a step.

    Raises:
        ValueError: if it is none.
    """
    if not isinstance(row, Mapping):
        raise ValueError("it is no object")
    for name in FIELDS:
        if name not in row:
            raise ValueError(f"it has no {name!r}")
    reward, done = _number(row["reward"]), row["done"]
    if not isinstance(done, bool) or not isinstance(row.get("start", False), bool):
        raise ValueError("'done' and 'start' are true or false")
    return Step(_value(row["obs"]), _value(row["action"]), float(reward), done, _value(row["next_obs"]))


def _value(value: Any) -> Any:
    """Return a number, or a list of numbers as a tuple."""
    if not isinstance(value, list):
        return _number(value)
    if not value:
        raise ValueError("a list of numbers is empty")
    return tuple(float(_number(one)) for one in value)


def _number(value: Any) -> float | int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (whole or isinstance(value, float)) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]!r} is no finite number")
    number: float | int = value
    return number


def _form(value: Any) -> int:
    """Return the length of a vector; 0 for a number."""
    return len(value) if isinstance(value, tuple) else 0
