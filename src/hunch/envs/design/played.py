"""Episodes that a program plays: what it is shown, and what its answers do."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

import gymnasium as gym
import numpy as np

from hunch.core import HunchError, UsageError
from hunch.envs.design.problem import OutsideError
from hunch.numbers import number

SHOWN: Final = 3
"""Number of steps of the worst episode in the feedback, from its beginning and from its end."""
SHORT: Final = 100
"""Maximum number of entries of an array that is shown in full."""
HISTORY: Final = 200
"""Number of commands, with what each led to, that a program sees of those taken so far: the latest."""
NOTHING: Final = "Nothing happens."
"""What a program sees in a text environment after an answer that is none of the commands (as in ALFWorld)."""


class Game:
    """An episode in progress.

    Args:
        env: The environment, which whoever made it closes.
        seed: Seed of the episode.
        remembers: Whether the program takes a memory, and returns one beside the action.

    Attributes:
        total: Return so far.
        steps: Number of steps so far.
        over: Whether the episode has ended.
        truncated: Whether it ended at the limit of steps.
        success: Whether the environment says that its task is solved.
    """

    def __init__(self, env: gym.Env[Any, Any], seed: int, remembers: bool = False) -> None:
        self.env = env
        self.remembers = remembers
        observation, info = begun(env, seed)
        self.memory: Any = None
        self.total, self.steps, self.over = 0.0, 0, False
        self.truncated, self.success = False, False
        self.lines: list[str] = []
        self.see(observation, info)

    def see(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Keep what the program is shown next."""
        self.observation = _plain(observation)

    def given(self) -> tuple[Any, ...]:
        """Return the arguments of the program's next call."""
        return (self.observation, self.memory) if self.remembers else (self.observation,)

    def action(self, answer: Any) -> Any:
        """Return the action in a program's answer.

        Raises:
            ValueError: if there is none.
        """
        if not self.remembers:
            return _action(answer, self.env.action_space)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ValueError("act must return (action, memory)")
        action, self.memory = answer
        return _action(action, self.env.action_space)

    def step(self, answer: Any) -> None:
        """Take the action in a program's answer, if it is valid.

        Raises:
            ValueError: if it is not.
            OutsideError: if the environment fails, so that no writer looks for the error in its program.
        """
        before, taken = self.observation, self.action(answer)
        try:
            observation, reward, terminated, truncated, info = self.env.step(taken)
            ended, at_limit, success = bool(terminated), bool(truncated), bool(info.get("success"))
        except (Exception, SystemExit) as error:
            raise OutsideError(f"the environment raised {type(error).__name__}: {error}") from error
        rewarded = number(reward, finite=True)
        if rewarded is None:
            raise OutsideError(
                f"the environment gave {_short(reward)} as the reward after the action {_short(taken)}, "
                "and a reward has to be a finite number"
            )
        self.total += rewarded
        self.steps += 1
        self.over = ended or at_limit
        self.truncated = at_limit and not ended
        self.success = success
        self.lines.append(f"observation {_short(before)}, action {_short(taken)}, reward {rewarded:g}")
        self.see(observation, info)

    def summary(self) -> str:
        """Describe the first and last steps, and why the episode ended."""
        lines = self.lines
        if len(lines) > 2 * SHOWN:
            lines = [*lines[:SHOWN], "...", *lines[-SHOWN:]]
        why = "at the limit of steps" if self.truncated else "by the rules of the environment"
        return "\n".join([*lines, f"It ended after {self.steps} steps, {why}."])


class TextGame(Game):
    """An episode in progress in a text environment.

    An answer that is none of the commands changes nothing and costs a step: the program sees that nothing
    happens, as a player of such games does.

    Args:
        env: The environment.
        seed: Seed of the episode.
        limit: Steps after which the episode ends, with those in which nothing happened.

    Attributes:
        wasted: Number of answers that were none of the commands.
        complaint: What was wrong with the first of them; empty if there is none.
    """

    def __init__(self, env: gym.Env[Any, Any], seed: int, limit: int) -> None:
        self.limit, self.wasted, self.complaint = limit, 0, ""
        self.history: list[tuple[str, str]] = []
        super().__init__(env, seed)
        self.lines.append(f"task {self.task}")

    def see(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Keep what the program is shown next."""
        self.observation = str(observation)
        self.task = str(info.get("task", ""))
        self.commands = [] if self.over else commands_of(self.env, info)

    def given(self) -> tuple[Any, ...]:
        """Return the arguments of the program's next call."""
        return (self.task, self.observation, self.commands, self.history[-HISTORY:])

    def action(self, answer: Any) -> str:
        """Return the command that a program's answer is."""
        return str(answer)

    def step(self, answer: Any) -> None:
        """Take the command that a program's answer is, or let nothing happen if it is none.

        Raises:
            OutsideError: if the environment fails.
        """
        if isinstance(answer, str) and answer in self.commands:
            super().step(answer)
            self.history.append((answer, self.observation))
        else:
            self._waste(answer)
        if self.steps >= self.limit and not self.over:
            self.over = self.truncated = True

    def _waste(self, answer: Any) -> None:
        such = ", ".join(map(repr, self.commands[:2]))
        complaint = f"act returned {_short(repr(answer))}, which is none of the commands: {such}, ..."
        self.complaint = self.complaint or complaint
        self.lines.append(f"observation {_short(self.observation)}, {complaint}")
        self.observation = NOTHING
        self.history.append((_short(answer), NOTHING))
        self.steps += 1
        self.wasted += 1


def begun(env: gym.Env[Any, Any], seed: int) -> tuple[Any, dict[str, Any]]:
    """Begin an episode; return its observation and info.

    Raises:
        HunchError: if the environment fails.
    """
    try:
        observation, info = env.reset(seed=seed)
        return observation, dict(info)
    except Exception as error:
        raise HunchError(f"The environment raised {type(error).__name__} in reset(): {error}") from error


def commands_of(env: gym.Env[Any, Any], info: Mapping[str, Any]) -> list[str]:
    """Return the commands that are possible now.

    Raises:
        UsageError: if the environment lists none.
    """
    if "actions" not in info:
        raise UsageError(
            "A policy as code needs a list of commands to choose from (info['actions']), and "
            f"{env.spec.id if env.spec else env} gives none."
        )
    return list(info["actions"])


def _action(action: Any, space: gym.Space[Any]) -> Any:
    """Return the action in the form that the environment expects.

    Raises:
        ValueError: if it is not an action.
    """
    if isinstance(space, gym.spaces.Discrete):
        if isinstance(action, np.ndarray) and action.ndim == 0:  # as np.where returns
            action = action.item()
        fits = isinstance(action, (bool, int)) or (isinstance(action, float) and action == int(action))
        if not fits or not space.contains(int(action)):
            raise ValueError(
                f"the action {_named(action)} no integer from {space.start} to {space.start + space.n - 1}"
            )
        return int(action)
    assert isinstance(space, gym.spaces.Box)
    row = None
    if isinstance(action, (int, float, list, tuple, np.ndarray)):
        with contextlib.suppress(ValueError):  # lists of different lengths are no array
            row = np.atleast_1d(np.asarray(action))
    if row is not None and row.shape == (int(np.prod(space.shape)),):  # a plain request asks for a list
        row = row.reshape(space.shape)
    if row is None or row.dtype.kind not in "iufb" or row.shape != space.shape:
        raise ValueError(f"the action {_named(action)} no array of shape {space.shape}")
    with np.errstate(over="ignore"):
        taken = np.clip(row, space.low, space.high).astype(space.dtype)
    if not np.isfinite(taken).all():
        raise ValueError(f"the action {_short(action)} is too large for numbers of type {space.dtype}")
    return taken


def _plain(observation: Any) -> Any:
    """Return an observation in a form that can be passed to a program."""
    if isinstance(observation, np.ndarray):
        return observation.astype(float)
    if isinstance(observation, tuple):
        return tuple(_plain(part) for part in observation)
    if isinstance(observation, (int, np.integer, np.bool_)):
        return int(observation)
    if isinstance(observation, (float, np.floating)):  # of a box that holds a single number
        return float(observation)
    raise HunchError(f"A policy cannot be shown an observation of type {type(observation).__name__}.")


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        rounded = np.round(value, 3) if value.dtype.kind in "fc" else value
        value = rounded.tolist() if 0 < value.size <= SHORT else f"array of shape {value.shape}"
    return str(value)[:120]


def _named(action: Any) -> str:
    """Begin a sentence about what an action is not; of a text of digits it says that it is a text."""
    return f"{_short(repr(action))} is a text, and" if isinstance(action, str) else f"{_short(action)} is"
