"""The environments of a run: by id, as objects, or as a vector of Gymnasium's; and their id again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

import hunch.envs
from hunch.core import UsageError
from hunch.rl.dataset import Dataset
from hunch.rl.episodes import name_of
from hunch.rl.rollout import TextEnvironment

Place: TypeAlias = (
    "str | TextEnvironment | gym.vector.VectorEnv[Any, Any, Any] | Sequence[TextEnvironment] | None"
)
"""How a Python program names environments."""


def places(place: Place, n: int = 1) -> list[TextEnvironment]:
    """The environments that a program names.

    Args:
        place: An id, of which ``n`` are made; an environment; several; or a vector environment, whose single
            environments are taken.
        n: Environments side by side, of an id.

    Raises:
        UsageError: if it is none of these, there is no such id, or an environment does not speak in text.
    """
    if isinstance(place, str):
        return [hunch.envs.make(place) for _ in range(n)]
    if n != 1:
        raise UsageError("envs=... makes several environments of an id; otherwise give them as a list.")
    envs = _single(place)
    if len({id(env) for env in envs}) < len(envs):
        raise UsageError("An environment stands there twice: each stream needs one of its own.")
    for env in envs:
        if not isinstance(env, gym.Env):
            raise UsageError(f"An environment is an id or a Gymnasium environment, not {env!r}.")
        hunch.envs.require_text(env)
    return envs


def _single(place: Any) -> list[Any]:
    """The single environments behind whatever stands for several."""
    if place is None:
        return []
    if isinstance(place, Dataset):
        raise UsageError("A data set is no environment: give it as data=..., with or without an environment.")
    if isinstance(place, gym.vector.VectorEnv):
        inner = place.unwrapped
        made = getattr(inner, "envs", None) or [make_one() for make_one in getattr(inner, "env_fns", ())]
        if not made:
            raise UsageError(
                f"{type(inner).__name__} has no single environments to take: make text environments, for "
                "example with hunch.envs.TextWrapper, and give them as a list."
            )
        return list(made)
    return list(place) if isinstance(place, Iterable) and not isinstance(place, gym.Env) else [place]


def identify(envs: Sequence[TextEnvironment]) -> tuple[str, dict[str, Any], bool]:
    """Id and options of environments, and whether these make them again."""
    if not envs:
        return "", {}, False
    found = [_identify(env) for env in envs]
    return *found[0][:2], all(each == found[0] and each[2] for each in found)


def _identify(env: TextEnvironment) -> tuple[str, dict[str, Any], bool]:
    spec = env.spec
    if spec is None:
        return name_of(env), {}, False
    histories = [layer.n for layer in _layers(env) if isinstance(layer, hunch.envs.History)]
    options = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    n = histories[0] if histories else 0
    if n != env.metadata.get("history", 0):
        options["history"] = n
    known = [layer for layer in _layers(env) if _is_usual(layer)]
    again = len(known) == len(list(_layers(env))) and len(histories) <= 1 and _is_plain(options)
    return spec.id, options if again else {}, again


def _layers(env: TextEnvironment) -> Iterable[TextEnvironment]:
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


def _is_usual(layer: TextEnvironment) -> bool:
    """Whether making the environment by its id puts this wrapper around it, too."""
    if isinstance(layer, TimeLimit):
        registered = gym.registry.get(layer.spec.id) if layer.spec else None
        return bool(registered and registered.max_episode_steps == layer._max_episode_steps)
    return isinstance(layer, (hunch.envs.History, OrderEnforcing, PassiveEnvChecker))


def _is_plain(options: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(json.dumps(options)) == options)
    except (TypeError, ValueError):
        return False
