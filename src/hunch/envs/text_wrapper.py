"""Wraps any Gymnasium environment with discrete actions as a text environment."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any, TypeVar, cast

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from gymnasium.wrappers import TimeLimit

from hunch.core import UsageError, snapshot
from hunch.envs.base import Outcome, TextEnv

Given = TypeVar("Given")


def reported_success(
    observation: Any, reward: float, terminated: bool, truncated: bool, info: Mapping[str, Any]
) -> bool:
    """Return the environment's own ``info["success"]`` or ``info["is_success"]``, if it has one.

    Otherwise an episode that terminates with a positive reward counts as a success. That is wrong if a
    failing step is rewarded too (CartPole) or success is not rewarded (MountainCar); pass your own rule to
    :class:`TextWrapper` then.
    """
    for name in ("success", "is_success"):
        if name in info:
            return bool(info[name])
    return terminated and reward > 0


class TextWrapper(TextEnv):
    """Turn a Gymnasium environment with discrete actions into a text environment.

        env = TextWrapper(
            gymnasium.make("MountainCar-v0"),
            describe=lambda x: f"The car is at {x[0]:.2f} and moves at {x[1]:.3f}.",
            actions=("push left", "wait", "push right"),
            task="drive up the hill on the right, to 0.5",
            success=lambda observation, reward, terminated, truncated, info: terminated,
        )

    It fulfils the contract of :class:`~hunch.envs.base.TextEnv`; rewards and ends, step limits included, are
    those of ``env``, and the same seed gives the episode that ``env`` would give. ``render`` returns the
    rendering of ``env``, with the text below it if that is text.

    Other people's environments use the contract's names for other things: ``info["rewards"]`` may hold the
    components of a reward, ``info["history"]`` the moves of a game. So nothing of the ``info`` of ``env``
    goes on unless ``info`` names it, and no attribute of ``env`` does: set ``things``, ``manual`` and the
    like on the wrapper. :func:`hunch.envs.check` says what was kept back.

    A copy has a copy of ``env``. So functions read what they are given, or are methods of ``env``
    (``describe=game.in_words``), which the copy calls on its own. One that reads another variable
    (``lambda x: game.in_words()``) would describe the first ``env`` in every copy.

    Args:
        env: The environment to wrap, with or without Gymnasium wrappers.
        describe: Turns an observation into text.
        actions: The names of all actions in the order of the action space; or, if admissible actions or names
            depend on the state, a function of observation and info that returns the admissible actions as a
            mapping from name to action; or None where ``env.step`` takes any text.
        task: The task in a sentence.
        success: A function of the results of ``env.step`` that returns whether the task is solved. Default:
            :func:`reported_success`.
        max_steps: Step limit in addition to that of ``env``.
        info: Names in the ``info`` of ``env`` to pass on, such as ``("event",)``, or
            ``("player", "rewards")`` in a game of several players. What they hold is copied.

    Attributes:
        withheld: Names in the ``info`` of ``env`` so far that the contract uses, too, and that ``info`` does
            not pass on.

    Raises:
        UsageError: if the action space is not discrete, names are in no order, empty or not unique, or their
            number is wrong, ``info`` names what the wrapper writes itself, or ``max_steps`` is not positive;
            while playing, if ``actions`` returns no mapping, no action before the end, or one that ``env``
            does not have.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        describe: Callable[[Any], str],
        actions: Sequence[str] | Callable[[Any, Mapping[str, Any]], Mapping[str, int]] | None,
        *,
        task: str = "",
        success: Callable[[Any, float, bool, bool, Mapping[str, Any]], bool] = reported_success,
        max_steps: int | None = None,
        info: Sequence[str] = (),
    ) -> None:
        if not isinstance(env, gymnasium.Env):
            raise UsageError(
                "TextWrapper wraps a Gymnasium environment, as gymnasium.make('FrozenLake-v1') gives it, not "
                f"{env!r}."
            )
        for name, function in (("describe", describe), ("success", success)):
            if not callable(function):
                raise UsageError(f"{name} must be a function, as in TextWrapper's example, not {function!r}.")
        if not isinstance(task, str):
            raise UsageError(f"task must be a text, not {task!r}.")
        space = getattr(env, "action_space", None)
        if actions is not None and not isinstance(space, Discrete):
            raise UsageError(
                f"TextWrapper needs a Discrete action space, not {space}: number some of its actions first, "
                "such as with gymnasium.wrappers.TransformAction."
            )
        self.passed = _passed(info)
        self.withheld: set[str] = set()
        self.metadata = _metadata(env, self.passed)  # type: ignore[misc]
        registered = env.spec.max_episode_steps if env.spec is not None else None
        limits = [limit for limit in (registered, max_steps) if limit is not None]
        super().__init__(min(limits, default=sys.maxsize), env.render_mode or "ansi")
        self.env = env if max_steps is None else TimeLimit(env, max_steps)
        self.offers = ("raw", "free_text") if actions is None else ("raw",)  # type: ignore[misc]
        self.task = task
        self._describe = describe
        self._success = success
        self._listed: Callable[[Any, Mapping[str, Any]], Mapping[str, int]] | Mapping[str, int] | None
        if actions is None or callable(actions):
            self._listed = actions
        else:
            self._listed = _numbered(actions, cast(Discrete, space))
        self._actions: Mapping[str, int] | None = {}
        self._seed: int | None = None
        self._observed: Any = None
        self._reported: Mapping[str, Any] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode of the wrapped environment, which receives ``seed`` and ``options``.

        The options ``episode`` and ``task_seed`` do not go on: its one seed decides the task and all else.
        """
        self._seed = seed
        return super().reset(seed=seed, options=options)

    def render(self) -> Any:
        """Return the rendering of the wrapped environment; if it is text, the observation follows below it.

        Raises:
            UsageError: before the first ``reset``, or if a package that the rendering needs is missing.
        """
        if self.env.render_mode is None:
            return super().render()
        self._require_begun()
        try:
            picture = self.env.render()
        except gymnasium.error.DependencyNotInstalled as error:
            raise UsageError(f"The environment cannot be rendered: {error}.") from None
        return f"{picture}\n{super().render()}" if self.env.render_mode == "ansi" else picture

    def close(self) -> None:
        """Close the wrapped environment."""
        self.env.close()

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        observation, info = self.env.reset(seed=self._seed, options=dict(options) or None)
        return self._arrive(observation, info)

    def _move(self, action: str) -> Outcome:
        observation, reward, terminated, truncated, info = self.env.step(
            action if self._actions is None else self._actions[action]
        )
        reward, terminated, truncated = float(reward), bool(terminated), bool(truncated)
        return self._arrive(observation, info, terminated or truncated)._replace(
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            success=bool(self._success(observation, reward, terminated, truncated, info)),
        )

    def _arrive(self, observation: Any, info: Mapping[str, Any], over: bool = False) -> Outcome:
        # The environment may change its arrays and lists in place at its next step.
        self._observed = snapshot(observation)
        self._reported = {name: snapshot(info[name]) for name in self.passed if name in info}
        self.withheld |= (info.keys() & _CONTRACT) - {*self.passed, *_WRITTEN}
        self._actions = self._at_the_end(observation, info) if over else self._admissible(observation, info)
        text = self._describe(observation)
        if not isinstance(text, str):
            raise UsageError(f"'describe' must return a text, not {type(text).__name__}.")
        return Outcome(
            text,
            None if self._actions is None else tuple(self._actions),
            event=str(self._reported.pop("event", "") or ""),
        )

    def _admissible(self, observation: Any, info: Mapping[str, Any]) -> Mapping[str, int] | None:
        """Return the admissible actions; None where any text is one.

        Raises:
            UsageError: if there is none, or one that the wrapped environment does not have.
        """
        if not callable(self._listed):
            return self._listed
        actions = self._listed(observation, info)
        if actions is None or (isinstance(actions, Mapping) and not actions):
            raise UsageError(f"'actions' must name actions of {self.env.action_space}: there is none.")
        return self._refuse_unknown(actions)

    def _at_the_end(self, observation: Any, info: Mapping[str, Any]) -> Mapping[str, int] | None:
        """Return the admissible actions of a game that is over: perhaps none, and no mask in ``info``."""
        if not callable(self._listed):
            return self._listed
        try:
            actions = self._listed(observation, info)
        except (LookupError, TypeError):  # the mask is left out, or None
            return {}
        return self._refuse_unknown(actions or {})

    def _refuse_unknown(self, actions: Mapping[str, int]) -> Mapping[str, int]:
        if not isinstance(actions, Mapping):
            space = cast(Discrete, self.env.action_space)
            raise UsageError(
                f"'actions' must return a mapping from names to actions of {space}, such as "
                f"{{'go left': {space.start}}}, not {actions!r}."
            )
        for name, action in actions.items():
            if not isinstance(name, str) or not name:
                raise UsageError(f"The names of the actions must be non-empty texts, not {name!r}.")
            if action not in self.env.action_space:
                raise UsageError(
                    f"'actions' must name actions of {self.env.action_space}: {name!r} is {action!r}."
                )
        return actions

    def _raw(self) -> Any:
        # Arrays become lists, so that the infos of two steps can be compared.
        plain = isinstance(self._observed, (np.ndarray, np.generic)) and np.ndim(self._observed) <= 1
        return self._observed.tolist() if plain else self._observed

    def _extras(self) -> dict[str, Any]:
        return dict(self._reported)

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy what a step changes in place."""
        memo.update(drawn_with(self.env))
        self.env = copy.deepcopy(self.env, memo)
        self._describe = _of_copy(self._describe, memo)
        self._success = _of_copy(self._success, memo)
        self._listed = _of_copy(self._listed, memo)


def drawn_with(env: gymnasium.Env[Any, Any]) -> dict[int, Any]:
    """Return what an environment draws with in pygame, by id, for a copy that shares it.

    Windows and clocks cannot be copied, and each rendering draws anew.
    """
    layers: list[Any] = [env]
    while isinstance(layers[-1], gymnasium.Wrapper):
        layers.append(layers[-1].env)
    held = [thing for layer in layers for thing in vars(layer).values()]
    held += [part for thing in held if isinstance(thing, (list, tuple)) for part in thing]
    return {id(thing): thing for thing in held if type(thing).__module__.partition(".")[0] == "pygame"}


def require_text(env: gymnasium.Env[Any, Any]) -> None:
    """Check that the observations of an environment are text.

    Raises:
        UsageError: if they are not; the message names TextWrapper, and our text version, if any.
    """
    space = getattr(env, "observation_space", None)
    if space is None or isinstance(space, Text) or not isinstance(space, _WORDLESS):
        return
    name = env.spec.id if env.spec else type(env.unwrapped).__name__
    ours = f"hunch/{re.sub('-v[0-9]+$', '', name)}-v0"
    use = f"use {ours}, or wrap" if ours in gymnasium.registry else "wrap"
    kind = type(space).__name__
    raise UsageError(f"{name} observes numbers ({kind}) and no text: {use} it in hunch.envs.TextWrapper.")


_WORDLESS = (Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple)
_WRITTEN = ("actions", "free_text", "success", "task", "raw")
"""Names in ``info`` that the wrapper writes, each with an argument of its own or none."""
_CONTRACT = {*_WRITTEN, "event", "pictures", "player", "rewards", "history", "action_descriptions"}
"""Names in ``info`` to which the contract gives a meaning."""


def _of_copy(function: Given, memo: Mapping[int, Any]) -> Given:
    """Return a method of what was copied as a method of its copy, and anything else as it is."""
    # Only these: what else a function holds may be large, such as a model, and is not known to change.
    if isinstance(function, MethodType) and id(function.__self__) in memo:
        return cast(Given, MethodType(function.__func__, memo[id(function.__self__)]))
    return function


def _passed(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names to pass on, after a check."""
    if isinstance(names, str):
        raise UsageError(f"info takes a tuple of names, such as ({names!r},), not one text.")
    for name in names:
        if name in _WRITTEN:
            raise UsageError(f"TextWrapper writes info[{name!r}] itself: leave {name!r} out of info.")
    return tuple(names)


def _metadata(env: gymnasium.Env[Any, Any], passed: Sequence[str]) -> dict[str, Any]:
    """Return the metadata of a wrapped environment, without the entries that the contract reads."""
    theirs = getattr(env, "metadata", None) or {}
    modes = ["ansi", *(mode for mode in theirs.get("render_modes", ()) if mode != "ansi")]
    metadata = {name: value for name, value in theirs.items() if name not in ("history", "players")}
    if "player" in passed and "players" in theirs:
        metadata["players"] = theirs["players"]
    return {**metadata, "render_modes": modes}


def _numbered(names: Sequence[str], space: Discrete) -> dict[str, int]:
    """The action of each name."""
    if isinstance(names, Mapping) or not isinstance(names, Sequence):  # in another order, or in none
        raise UsageError(
            "actions takes the names of all actions in the order of the action space, as a tuple or list, or "
            f"a function that returns a mapping from names to actions, not {names!r}."
        )
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise UsageError(f"The names of the actions must be non-empty texts, not {names!r}.")
    if len(names) != space.n:
        raise UsageError(f"{space} has {space.n} actions, but {len(names)} names: {', '.join(names)}.")
    actions = {name: int(space.start) + number for number, name in enumerate(names)}
    if len(actions) != len(names):
        raise UsageError(f"The names of the actions must differ: {', '.join(names)}.")
    return actions
