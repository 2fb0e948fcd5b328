"""Wrappers that change observations or actions of a text environment."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, SupportsFloat

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from hunch.core import InadmissibleActionError, UsageError
from hunch.envs.offers import acts, declared
from hunch.rl.action_texts import shown_as

REFUSED: Final = "Nothing happens."
"""The observation and the event after an inadmissible text (ALFWorld's words)."""


class Rewording(gymnasium.Wrapper[str, "str | int", str, "str | int"], RecordConstructorArgs):
    """Base class of wrappers that only change observation and info, in the method ``reword``."""

    option: Mapping[str, Any]
    """The option of :func:`hunch.envs.make` that stands for this wrapper."""

    def reword(
        self, observation: str, info: dict[str, Any], action: str | int | None
    ) -> tuple[str, dict[str, Any]]:
        """Return the changed observation and info after an action; the action is None after a reset."""
        raise NotImplementedError

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        return self.reword(*self.env.reset(seed=seed, options=options), action=None)

    def step(self, action: str | int) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take an action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        observation, info = self.reword(observation, info, action)
        return observation, reward, terminated, truncated, info


class History(Rewording):
    """Adds the last ``n`` observation-action pairs as ``info["history"]``, oldest first.

    The observation is unchanged; :meth:`hunch.core.State.text` joins history and observation.

    Args:
        env: A text environment.
        n: Number of pairs to keep.

    Raises:
        UsageError: if ``n`` is negative.
    """

    def __init__(self, env: gymnasium.Env[str, str | int], n: int) -> None:
        if n < 0:
            raise UsageError(f"The number of pairs in the history must be at least 0, not {n}.")
        RecordConstructorArgs.__init__(self, n=n)
        gymnasium.Wrapper.__init__(self, env)
        self.n = n
        self._past: deque[tuple[str, str]] = deque(maxlen=n)
        self._observation = ""
        self._actions: tuple[str, ...] = ()

    def reword(
        self, observation: str, info: dict[str, Any], action: str | int | None
    ) -> tuple[str, dict[str, Any]]:
        """Add the history, which is empty after a reset."""
        if action is None:
            self._past.clear()
        else:
            name = action if isinstance(action, str) else self._actions[action]
            self._past.append((self._observation, name))
        self._observation, self._actions = observation, tuple(info.get("actions") or ())
        return observation, {**info, "history": tuple(self._past)}


class Pictured(Rewording):
    """Adds a picture of each state in ``info["pictures"]``, as the bytes of a PNG file.

    Args:
        env: A text environment that was made with ``render_mode="rgb_array"``.
    """

    option: Mapping[str, Any] = {"picture": True}

    def __init__(self, env: gymnasium.Env[str, str | int]) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)
        offers = declared(env)
        self.offers = None if offers is None else ("pictures", *offers)

    def reword(
        self, observation: str, info: dict[str, Any], action: str | int | None
    ) -> tuple[str, dict[str, Any]]:
        """Add the picture of the state to the info."""
        from hunch.lm.pictures import png  # only where an environment shows pictures

        return observation, {**info, "pictures": (png(self.env.render()),)}


def step_limit(env: gymnasium.Env[Any, Any]) -> int:
    """Return the step limit of an environment, its own or Gymnasium's; the largest number if none."""
    limits = [getattr(env.unwrapped, "max_steps", None)]
    limits.append(env.spec.max_episode_steps if env.spec is not None else None)
    return min((int(limit) for limit in limits if limit), default=sys.maxsize)


class Written(gymnasium.Wrapper[str, "str | int", str, "str | int"], RecordConstructorArgs):
    """Takes any text as the action; an inadmissible one changes nothing and costs a step.

    Neither the admissible actions nor their descriptions are shown. A text that looks like an action is this
    action: spaces around it, or how Unicode composes its letters, do not matter. The event of a refused text
    is ``Nothing happens.``

    Args:
        env: A text environment with listed actions and a step limit: ``max_steps``, or that of Gymnasium.

    Raises:
        UsageError: if any text already is an action, or there is no step limit.
    """

    option: Mapping[str, Any] = {"written": True}

    def __init__(self, env: gymnasium.Env[str, str | int]) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)
        name = env.spec.id if env.spec else type(env.unwrapped).__name__
        if acts(offers := declared(env)) != "listed":
            raise UsageError(f"{name} accepts any text as it is: leave out written.")
        self.limit = step_limit(env)
        if self.limit == sys.maxsize:
            raise UsageError(
                f"An inadmissible text costs a step, and {name} has no step limit: set max_steps."
            )
        self.offers = tuple(dict.fromkeys(("free_text", "events", *(offers or ()))))
        self.left = 0  # steps of the episode
        self._info: dict[str, Any] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.left = self.limit
        return observation, self._told(info)

    def step(self, action: str | int) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take an action if the text is admissible; else only count the step.

        Raises:
            InadmissibleActionError: if the action is no text, such as an index in a list that nobody sees.
            UsageError: before the first ``reset`` and after the end of an episode.
        """
        if not self.left:
            raise UsageError("No episode is running: call reset before step.")
        if not isinstance(action, str):
            raise InadmissibleActionError(f"An action is a text here, not {action!r}.")
        self.left -= 1
        text = shown_as(action, self.listed)
        if text is not None:
            observation, reward, terminated, truncated, info = self.env.step(text)
        else:
            refused = {**self._info, "success": False, "event": REFUSED}
            refused.pop("rewards", None)  # those of the step before; the common reward of this one is 0
            observation, reward, terminated, truncated, info = REFUSED, 0.0, False, False, refused
        truncated = truncated or not (self.left or terminated)
        self.left *= not (terminated or truncated)
        return observation, reward, terminated, truncated, self._told(info)

    @property
    def listed(self) -> tuple[str, ...]:
        """The admissible actions."""
        return tuple(self._info.get("actions") or ())

    def _told(self, info: dict[str, Any]) -> dict[str, Any]:
        self._info = dict(info)  # the environment may change its own
        hidden = "actions", "action_descriptions"
        return {name: value for name, value in info.items() if name not in hidden} | {"free_text": True}
