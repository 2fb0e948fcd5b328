"""The contract of every text environment, in one place.

A text environment is a Gymnasium environment whose observation is a string and whose admissible actions,
which vary from state to state, are strings too. An environment subclasses :class:`TextEnv` and implements two
hooks, ``_begin`` and ``_move``; everything that callers rely on is implemented here.
"""

from __future__ import annotations

import copy
import operator
import string
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import gymnasium
import numpy as np
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Space, Text
from gymnasium.vector.utils import create_shared_memory

from hunch.core import InadmissibleActionError, PlainPrompt, UsageError
from hunch.envs.offers import Offer
from hunch.rl.world import TOLD

SomeSpace = TypeVar("SomeSpace", bound=Space[Any])
_ANY_SEED = np.random.SeedSequence(0)


class Outcome(NamedTuple):
    """The result of a reset or an action.

    Attributes:
        observation: The observation.
        actions: The admissible actions; None if any text is admissible.
        reward: The reward of the action; 0 after a reset.
        terminated: True if the task itself ends here; ``max_steps`` is handled by the base class.
        success: True if the task is solved.
        truncated: True if a limit of the environment other than ``max_steps`` is reached.
        event: What happened, in words.
    """

    observation: str
    actions: tuple[str, ...] | None
    reward: float = 0.0
    terminated: bool = False
    success: bool = False
    truncated: bool = False
    event: str = ""


class AnyText(Text):
    """The space of observations: any text, whatever its letters and length."""

    def __init__(self) -> None:
        super().__init__(max_length=100_000, min_length=0, charset=string.printable)  # of samples

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a text."""
        return isinstance(x, str)

    def __repr__(self) -> str:
        return "AnyText()"


@create_shared_memory.register(AnyText)
def _share_no_texts(space: AnyText, *given: Any, **named: Any) -> Any:
    """Refuse Gymnasium's shared memory: its vector environments never read a text from there again."""
    raise CustomSpaceError("Texts cannot be in shared memory: set shared_memory=False.")


class Admissible(Text):
    """The space of the currently admissible actions, sampled uniformly; of any text where all are."""

    def __init__(self) -> None:
        super().__init__(max_length=10_000, min_length=0, charset=string.printable)
        self.actions: tuple[str, ...] | None = ()

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a random admissible action; masks are not supported."""
        if mask is not None or probability is not None:
            raise UsageError("Admissible actions cannot be sampled with a mask or probabilities.")
        if self.actions is None:
            return str(super().sample())
        if not self.actions:
            raise UsageError("No action is admissible: call reset first.")
        return self.actions[int(self.np_random.integers(len(self.actions)))]

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is admissible now."""
        return isinstance(x, str) if self.actions is None else x in self.actions


class TextEnv(gymnasium.Env[str, "str | int"]):
    """A Gymnasium environment with text observations and text actions.

    - The observation is a ``str``.
    - ``info["actions"]`` is the tuple of admissible actions, after ``reset`` and after every ``step``. If any
      text is an action, it is absent and ``info["free_text"]`` is True.
    - ``info["action_descriptions"]``, if there is one, maps some of the admissible actions to what is known
      of them, for models that choose among described options.
    - ``step`` accepts one of these strings, or its index.
    - ``info["success"]`` says whether the task is solved, ``info["task"]`` states it in a sentence, and
      ``info["event"]`` says what happened.
    - ``reset(options=...)`` accepts ``"episode"``, the number of the episode, and ``"task_seed"``, which
      fixes the task over episodes, in addition to the environment's own options.
    - An environment that asks language models holds them in ``models``, by name, as ``hunch.lm.load`` returns
      them; a run counts and budgets them with those of the agent.
    - An environment for planning returns its state in ``info["raw"]`` and restores it in ``place``.
    - ``terminated`` means that the task has ended, ``truncated`` that ``max_steps`` or another limit of the
      environment is reached.
    - The same seed gives the same episode.
    - An inadmissible action, or a step outside an episode, raises an error and changes nothing.
    - ``copy.deepcopy`` gives an independent environment, even in the middle of an episode, and ``unshare``
      can make that faster.
    - ``render`` returns the observation (``"ansi"``), below a map if the environment has a grid; such an
      environment can also be drawn (``"rgb_array"``).

    Args:
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"``, or ``"rgb_array"`` if listed in ``metadata["render_modes"]``.

    Raises:
        UsageError: if ``max_steps`` is not positive, or there is no such ``render_mode``.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "history": 0}  # type: ignore[misc]
    offers: ClassVar[Sequence[Offer] | None] = None
    """Properties beyond listed actions and texts that methods may need; None if not declared."""
    tells: ClassVar[Sequence[str]] = TOLD
    """Attributes that agents may know before the first step (:class:`hunch.core.World`)."""
    task: str = ""
    code: str = ""
    """Source code of the dynamics without the reward, if the environment shows it."""
    wording: ClassVar[object | None] = None
    """The wording of states and actions in prompts, if the environment defines it."""
    examples: tuple[tuple[PlainPrompt, tuple[str, ...]], ...] = ()
    """Demonstrations: prompts, or instructions for planners, with the texts or plans that answer them. A step
    of a plan is a skill, with what is reported of it on lines below, if anything is."""
    things: tuple[str, ...] = ()
    """Names of the things in the environment."""
    manual: str = ""
    """The rules that a player may read."""

    def __init__(self, max_steps: int, render_mode: str | None = None) -> None:
        if max_steps < 1:
            raise UsageError(f"max_steps must be at least 1, not {max_steps}.")
        modes = self.metadata.get("render_modes", ())
        if render_mode is not None and render_mode not in modes:
            known = " or ".join(modes) or "left out"
            raise UsageError(f"render_mode must be {known}, not {render_mode!r}.")
        self.max_steps = max_steps
        self.render_mode = render_mode
        self._shown = ""
        self.observation_space: Space[Any] = AnyText()
        self.action_space: Admissible = Admissible()
        self._steps = 0
        self._running = self._begun = False
        self.episode = 0
        self._task_random: np.random.Generator | None = None

    @property
    def task_random(self) -> np.random.Generator:
        """Random generator of the task; the same in all episodes with the same ``task_seed``."""
        return self._task_random or self.np_random

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        """Start an episode; set ``self.task``.

        The only sources of chance are ``self.task_random`` for the task and ``self.np_random`` for all else.
        """
        raise NotImplementedError

    def _move(self, action: str) -> Outcome:
        """Take an action that is known to be admissible."""
        raise NotImplementedError

    def _raw(self) -> Any:
        """The environment's own state, for ``info["raw"]``; None if it is not shown."""
        return None

    def _place(self, raw: Any) -> Outcome:
        """Continue from a state returned by :meth:`_raw`; what that state does not contain is drawn again.

        Raise :meth:`_no_state`, before anything changes, if there is no such state.
        """
        raise UsageError(f"{type(self).__name__} cannot be set to a given state.")

    def _no_state(self, form: str, raw: Any) -> UsageError:
        """Return the error that ``raw`` is no state of this environment; ``form`` says what is one."""
        return UsageError(f"A state of {type(self).__name__} must be {form}, not {raw!r}.")

    def _extras(self) -> dict[str, Any]:
        """What ``info`` holds besides the contract."""
        return {}

    def _grid(self) -> Sequence[str]:
        """The map as rows of characters, one per cell, for :meth:`render`; empty if there is none."""
        return ()

    def unshare(self, memo: dict[int, Any]) -> None:
        """Give this object, a shallow copy that ``copy.deepcopy`` has just made, its own state.

        By default every attribute is copied in depth, but for ``models``. Override it where that is slow, and
        copy only what a step changes in place; attributes that are only replaced may stay shared. Random
        generators and the spaces have been copied before.

        Args:
            memo: What ``copy.deepcopy`` has copied so far; pass it on.
        """
        for name, value in vars(self).items():
            if name not in _COPIED:
                setattr(self, name, copy.deepcopy(value, memo))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode and return its first observation and info.

        Raises:
            UsageError: if ``options`` has an unknown entry, or a wrong value; a running episode is then not
                affected.
        """
        before = self._np_random, self._np_random_seed, self.episode, self._task_random
        remaining = dict(options or {})
        episode, task_seed = remaining.pop("episode", 0), remaining.pop("task_seed", None)
        for name, value in (("episode", episode), ("task_seed", 0 if task_seed is None else task_seed)):
            _require_number(name, value)
        super().reset(seed=seed)
        self.episode = episode
        self._task_random = None if task_seed is None else np.random.default_rng(task_seed)
        try:
            outcome = self._begin(remaining)
        except UsageError:
            self._np_random, self._np_random_seed, self.episode, self._task_random = before
            raise
        return self._arrive_at(outcome)

    def place(self, raw: Any) -> tuple[str, dict[str, Any]]:
        """Continue from a state of ``info["raw"]``, for planning; hidden parts are drawn again.

        Returns:
            Observation and info, as for ``reset``.

        Raises:
            UsageError: if this environment cannot be set to a given state, or knows that there is no such
                state; it is then as it was.
        """
        return self._arrive_at(self._place(raw))

    def _arrive_at(self, outcome: Outcome) -> tuple[str, dict[str, Any]]:
        self._steps = 0
        self._running = self._begun = True
        return outcome.observation, self._info(outcome)

    def step(self, action: str | int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take an admissible action, given as a string or as an index in ``info["actions"]``.

        Returns:
            Observation, reward, terminated, truncated, info.

        Raises:
            InadmissibleActionError: if the action is not among the admissible ones.
            UsageError: before the first ``reset`` and after the end of an episode.
        """
        if not self._running:
            raise UsageError("No episode is running: call reset before step.")
        outcome = self._move(self.action_name(action))
        self._steps += 1
        truncated = (outcome.truncated or self._steps >= self.max_steps) and not outcome.terminated
        self._running = not (outcome.terminated or truncated)
        return outcome.observation, outcome.reward, outcome.terminated, truncated, self._info(outcome)

    def action_name(self, action: str | int) -> str:
        """Return the admissible action that a string or an index names.

        Raises:
            InadmissibleActionError: if there is none.
        """
        if self.action_space.actions is None and isinstance(action, str):
            return action
        return action_name(action, self.action_space.actions or ())

    def render(self) -> Any:
        """Return the rendering: text in mode ``"ansi"``, else an image, (height, width, 3) ``uint8``.

        Raises:
            UsageError: if the environment was made without a ``render_mode``, and before the first ``reset``.
        """
        if self.render_mode is None:
            raise UsageError("Set a render_mode when you make the environment, such as 'ansi'.")
        self._require_begun()
        if self.render_mode == "ansi":
            return "\n".join([*self._grid(), self._shown])
        from hunch.envs.drawing import draw  # only where a picture is wanted

        return draw(self._grid())

    def _require_begun(self) -> None:
        """Raise a UsageError if there has been no episode yet, so that there is nothing to render."""
        if not self._begun:
            raise UsageError("No episode has begun: call reset before render.")

    def _info(self, outcome: Outcome) -> dict[str, Any]:
        self._shown = outcome.observation
        self.action_space.actions = outcome.actions
        choice = {"free_text": True} if outcome.actions is None else {"actions": outcome.actions}
        info = {**choice, "success": outcome.success, "task": self.task, "event": outcome.event}
        raw = self._raw()
        return {**info, **self._extras()} if raw is None else {**info, "raw": raw, **self._extras()}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = copy.copy(self)
        memo[id(self)] = new
        if self._np_random is not None:
            new._np_random = _copied(self._np_random)
        if self._task_random is not None:
            new._task_random = _copied(self._task_random)
        new.action_space = _with_own_chance(self.action_space)
        space = self.observation_space
        new.observation_space = (
            _with_own_chance(space) if type(space) is AnyText else copy.deepcopy(space, memo)
        )
        new.unshare(memo)
        return new


def _require_number(name: str, value: Any) -> None:
    """Raise a UsageError unless a reset option is a whole number, 0 or above."""
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_whole or value < 0:
        raise UsageError(f"The reset option {name} must be a whole number, at least 0, not {value!r}.")


def action_name(action: str | int, actions: Sequence[str]) -> str:
    """Return the member of ``actions`` that a string or an index names.

    Raises:
        InadmissibleActionError: if there is none.
    """
    if isinstance(action, str):
        if action in actions:
            return action
        raise InadmissibleActionError(
            f"{action!r} is not admissible here; admissible are: {', '.join(actions)}."
        )
    if isinstance(action, bool | np.bool_):
        raise InadmissibleActionError(f"An action is a string or an index, not {action!r}.")
    try:
        index = operator.index(action)
    except TypeError:
        raise InadmissibleActionError(f"An action is a string or an index, not {action!r}.") from None
    if not 0 <= index < len(actions):
        raise InadmissibleActionError(
            f"Action index {index} is out of range: {len(actions)} actions are admissible here."
        )
    return actions[index]


_COPIED = (
    *("_np_random", "_task_random", "action_space", "observation_space"),
    *("models", "_cached_spec", "spec"),
)
"""Attributes that :meth:`TextEnv.unshare` leaves alone; models keep their meter and cache."""


def _with_own_chance(space: SomeSpace) -> SomeSpace:
    """Copy a space whose attributes are only replaced; its characters alone take ten times as long."""
    new = copy.copy(space)
    if space._np_random is not None:
        new._np_random = _copied(space._np_random)
    return new


def _copied(rng: np.random.Generator) -> np.random.Generator:
    """Copy a generator five times as fast as ``copy.deepcopy``, which would dominate the whole copy."""
    bits = type(rng.bit_generator)(_ANY_SEED)
    bits.state = rng.bit_generator.state
    return np.random.Generator(bits)
