"""Environments of BALROG and SmartPlay as text environments, through :class:`~hunch.envs.TextWrapper`.

Their wrappers follow the older ``gym``: ``reset`` takes no seed, an episode ends with one flag, and each has
its own place for text and actions. BALROG (Paglieri et al., ICLR 2025) puts the text into the observation and
takes texts as actions; SmartPlay (Wu et al., ICLR 2024) puts the text into ``info`` and takes numbers.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import gymnasium
from gymnasium.spaces import Discrete, Space

from hunch.core import UsageError
from hunch.envs.text_wrapper import TextWrapper
from hunch.envs.textarena import OwnChance

Reseed: TypeAlias = Callable[[Any, int], None]
"""Gives an environment a seed for its next reset."""


def balrog(
    env: Any, *, task: str = "", max_steps: int | None = None, reseed: Reseed | None = None
) -> TextWrapper:
    """Return an environment of BALROG as a text environment.

    Its actions are those of ``language_action_space``; where that is no list, as in TextWorld, any text is an
    action. Success is a progression of 1; the progression is in ``info["progression"]``.

    Args:
        env: An environment from ``balrog.environments.make_env``, or one of its language wrappers.
        task: The task in a sentence; the mission of BabyAI is part of the observation.
        max_steps: Step limit in addition to that of ``env``.
        reseed: Called with ``env`` and each seed. Default: ``env.reset`` or ``env.seed`` gets it.

    Raises:
        UsageError: if it has no ``language_action_space``, or no text in its observations.
    """
    space = _of(env, "language_action_space")
    names = tuple(map(str, space)) if hasattr(space, "__iter__") else None
    made = _Balrog(env, names, reseed)
    return TextWrapper(made, str, names, task=task, max_steps=max_steps, info=("progression",))


def smartplay(
    env: Any, *, task: str | None = None, max_steps: int | None = None, reseed: Reseed | None = None
) -> TextWrapper:
    """Return an environment of SmartPlay as a text environment.

    Its actions are those of ``action_list``. Success is ``info["completed"]``, and the task is the manual.
    SmartPlay draws from the global generators of Python and NumPy, and some of its resets shuffle what the
    last one left. Here each environment has its own state of the generators, and a seed starts from a fresh
    copy, so that it gives the same episode.

    Args:
        env: An environment from ``gym.make("smartplay:…")``.
        task: The task in a sentence. Default: the environment's manual, ``env.desc``.
        max_steps: Step limit in addition to that of ``env``.
        reseed: Called with ``env`` and each seed; Crafter needs :func:`crafter_seed`.

    Raises:
        UsageError: if it has no ``action_list``, or no text in its ``info``.
    """
    names = tuple(map(str, _of(env, "action_list")))
    told = str(_of(env, "desc")) if task is None else task
    return TextWrapper(_SmartPlay(env, range(len(names)), reseed), str, names, task=told, max_steps=max_steps)


def crafter_seed(env: Any, seed: int) -> None:
    """Give a seed to Crafter, which takes one only when it is made: pass this as ``reseed``."""
    game = env.unwrapped
    game._seed, game._episode = seed, 0


class _Older(gymnasium.Env[str, Any]):
    """An environment of the older ``gym`` in Gymnasium's form, whose observation is its text.

    Args:
        env: ``reset`` returns an observation, or (observation, info); ``step`` returns four or five values.
        actions: What ``env.step`` takes, by number; None where it takes any text.
        reseed: Called with ``env`` and each seed.
    """

    def __init__(self, env: Any, actions: Sequence[Any] | None, reseed: Reseed | None) -> None:
        self.env, self.actions, self.reseed = env, actions, reseed
        self.observation_space: Space[Any] = Space()
        self.action_space: Space[Any] = Space() if actions is None else Discrete(len(actions))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode; the older ``gym`` has no options."""
        found = self.env.reset(**self._seeded(seed))
        observation, info = found if isinstance(found, tuple) and len(found) == 2 else (found, {})
        return self.text(observation, info), self.extras(info)

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take an action by its number, or a text."""
        observation, reward, terminated, *late, info = self.env.step(
            action if self.actions is None else self.actions[action]
        )
        truncated = bool(late[0]) if late else bool(info.get("TimeLimit.truncated", False))
        ended = bool(terminated) and not (truncated and not late)
        return self.text(observation, info), float(reward), ended, truncated, self.extras(info)

    def _seeded(self, seed: int | None) -> dict[str, Any]:
        """Pass on a seed; what ``reset`` takes of it."""
        if seed is None:
            return {}
        if self.reseed is not None:
            self.reseed(self.env, seed)
            return {}
        kinds = inspect.signature(self.env.reset).parameters.values()
        if any(kind.name == "seed" or kind.kind is kind.VAR_KEYWORD for kind in kinds):
            return {"seed": seed}
        if hasattr(self.env, "seed"):
            self.env.seed(seed)
        return {}

    def text(self, observation: Any, info: Mapping[str, Any]) -> str:
        """The text of an observation."""
        raise NotImplementedError

    def extras(self, info: Mapping[str, Any]) -> dict[str, Any]:
        """The environment's info, and whether the task is solved."""
        raise NotImplementedError


class _Balrog(_Older):
    def text(self, observation: Any, info: Mapping[str, Any]) -> str:
        try:
            parts = observation["text"]["long_term_context"], observation["text"]["short_term_context"]
        except (TypeError, KeyError, IndexError):
            raise UsageError(
                "BALROG's observations have text in long and short context; this has none."
            ) from None
        mission = f"Your mission: {observation['mission']}" if "mission" in observation else ""
        return "\n\n".join(filter(None, (mission, *map(str, parts))))

    def extras(self, info: Mapping[str, Any]) -> dict[str, Any]:
        progression = float(_of(self.env, "get_stats")().get("progression", 0.0))
        return {**info, "progression": progression, "success": progression >= 1}


class _SmartPlay(_Older):
    def __init__(self, env: Any, actions: Sequence[Any], reseed: Reseed | None) -> None:
        super().__init__(env, actions, reseed)
        self.fresh, self.chance = copy.deepcopy(env), OwnChance()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        if seed is not None:
            self.chance.seed(seed)
        with self.chance.drawn():
            self.env = self.env if seed is None else copy.deepcopy(self.fresh)
            return super().reset(seed=seed)

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        with self.chance.drawn():
            return super().step(action)

    def text(self, observation: Any, info: Mapping[str, Any]) -> str:
        if "obs" not in info:
            raise UsageError("SmartPlay tells its text in info['obs']; this environment has none.")
        return str(info["obs"])

    def extras(self, info: Mapping[str, Any]) -> dict[str, Any]:
        return {**info, "success": bool(info.get("completed", False))}


def _of(env: Any, name: str) -> Any:
    """An attribute of an environment, or of one that it wraps.

    Raises:
        UsageError: if none has it.
    """
    inner = env
    while inner is not None:
        if hasattr(inner, name):
            return getattr(inner, name)
        inner = vars(inner).get("env", vars(inner).get("gym_env"))
    raise UsageError(f"{type(env).__name__} has no {name}, nor has any environment that it wraps.")
