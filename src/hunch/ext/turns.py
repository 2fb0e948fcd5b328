"""A text environment for other trainers: any text is an action, and results are plain values."""

from __future__ import annotations

import copy
from base64 import b64encode
from typing import Any, NamedTuple

import numpy as np

import hunch.envs
from hunch.core import HunchError, UsageError
from hunch.envs.invalid import INVALID
from hunch.envs.offers import acts, declared
from hunch.envs.wrappers import REFUSED

LONGEST = 8_192
"""Characters of the longest text that an environment gets to read; a longer one is an invalid action."""

BRIEF = 100
"""Characters of a wrong value that an error shows."""


class Turn(NamedTuple):
    """The result of a reset or an action, as plain values.

    Attributes:
        text: The observation.
        task: The task in a sentence.
        actions: The admissible actions; None if any text is allowed.
        reward: The reward of the action.
        done: True if the episode has ended.
        success: True if the task is solved.
        truncated: True if the episode ended at a limit.
        event: What happened, in words.
        pictures: PNG files in base64.
        tools: With the first observation of an episode: the tools whose calls are actions, as JSON in the
            form of OpenAI's chat API.
    """

    text: str
    task: str
    actions: tuple[str, ...] | None
    reward: float = 0.0
    done: bool = False
    success: bool = False
    truncated: bool = False
    event: str = ""
    pictures: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class Turns:
    """A text environment in which any text is an action; where actions are listed, another text costs a step.

    A text of more than 8,192 characters counts as an empty one, and the event calls it invalid.

    Args:
        env: Id of the environment.
        options: Options of the environment.

    Raises:
        UsageError: if there is no such environment or option, its actions are programs, or it has several
            players.
    """

    def __init__(self, env: str, **options: Any) -> None:
        self.name, self.options = env, options
        made = hunch.envs.make(env, **options)
        if (kind := acts(declared(made))) == "program":
            raise UsageError(
                f"{env} takes programs, which anyone who connects could run here: it cannot be served."
            )
        self.env = made if kind == "text" else hunch.envs.make(env, **options, written=True)
        if self.env.metadata.get("players", 1) > 1 or "player" in self.env.reset(seed=0)[1]:
            raise UsageError(f"{env} needs two players, but an external trainer controls only one.")

    def fork(self) -> Turns:
        """Return an equal environment that shares nothing with this one."""
        try:
            return copy.deepcopy(self)
        except Exception as error:
            raise HunchError(f"{self.env.spec} cannot be copied for another session: {error}.") from error

    def reset(self, seed: int | None = None, **options: int | None) -> Turn:
        """Begin an episode; the same seed gives the same episode."""
        observation, info = self.env.reset(
            seed=seed, options={k: v for k, v in options.items() if v is not None}
        )
        turn = self._turn(observation, info)
        if self.env.has_wrapper_attr("tool_schemas"):
            turn = turn._replace(tools=self.env.get_wrapper_attr("tool_schemas"))
        return turn

    def step(self, text: str) -> Turn:
        """Take a text as the action."""
        too_long = len(text) > LONGEST
        observation, reward, terminated, truncated, info = self.env.step("" if too_long else text)
        if not isinstance(reward, int | float | np.number):
            raise HunchError(f"The environment's reward is no number: {_brief(reward)}.")
        turn = self._turn(observation, info)
        if too_long and REFUSED not in turn.event.splitlines() and INVALID not in turn.event:
            turn = turn._replace(event=f"{INVALID}\n{turn.event}".rstrip())
        return turn._replace(reward=float(reward), done=terminated or truncated, truncated=truncated)

    def _turn(self, observation: Any, info: dict[str, Any]) -> Turn:
        listed = self.env.get_wrapper_attr("listed") if self.env.has_wrapper_attr("listed") else None
        task, event = info.get("task", ""), info.get("event", "")
        for name, text in {"observation": observation, "task": task, "event": event}.items():
            if not isinstance(text, str):
                raise HunchError(f"The environment's {name} is no text: {_brief(text)}.")
        success = bool(info.get("success", False))
        pictures = tuple(b64encode(data).decode() for data in info.get("pictures", ()))
        return Turn(
            _whole(observation),
            _whole(task),
            listed,
            success=success,
            event=_whole(event),
            pictures=pictures,
        )


def _whole(text: str) -> str:
    """Return a text in which halves of characters, which no message can hold, are question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= BRIEF else f"{text[:BRIEF]}..."
