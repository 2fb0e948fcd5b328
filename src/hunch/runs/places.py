"""The environments of a run, given as an id, as objects, or as a Gymnasium vector environment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

import hunch.envs
from hunch.core import UsageError
from hunch.rl.dataset import Dataset
from hunch.rl.rollout import TextEnvironment
from hunch.rl.world import name_of
from hunch.runs.models import changed, layers

Place: TypeAlias = (
    "str | TextEnvironment | gym.vector.VectorEnv[Any, Any, Any] | Sequence[TextEnvironment] | None"
)
"""The ways in which a Python program can specify environments."""


def places(place: Place, n: int = 1, options: Mapping[str, Any] | None = None) -> list[TextEnvironment]:
    """Return the environments that a program specified.

    Args:
        place: An id, from which ``n`` environments are made; one or several environments; or a vector
            environment, whose single environments are used.
        n: Number of parallel environments, if ``place`` is an id.
        options: Options of the environment, if ``place`` is an id.

    Raises:
        UsageError: if ``place`` is none of these, the id is unknown, or it is not a text environment.
    """
    if isinstance(place, str):
        return [hunch.envs.make(place, **(options or {})) for _ in range(n)]
    if options:
        raise UsageError("env_options=... need an id: pass options when you make an environment.")
    if n != 1:
        raise UsageError("envs=... makes several environments from an id; otherwise pass them as a list.")
    envs = _single(place)
    if len({id(env) for env in envs}) < len(envs):
        raise UsageError("The same environment is given twice: each stream needs its own.")
    for env in envs:
        if not isinstance(env, gym.Env):
            raise UsageError(f"An environment must be an id or a Gymnasium environment, not {env!r}.")
        hunch.envs.require_text(env)
    if len(named := dict.fromkeys(map(name_of, envs))) > 1:
        raise UsageError(f"The streams of a run are in one environment, not in {' and '.join(named)}.")
    return envs


def _single(place: Any) -> list[Any]:
    """Return the single environments of an argument."""
    if place is None:
        return []
    if isinstance(place, Dataset):
        raise UsageError("A data set is not an environment: pass it as data=..., with or without an env.")
    if isinstance(place, gym.vector.VectorEnv):
        inner = place.unwrapped
        made = getattr(inner, "envs", None) or [make_one() for make_one in getattr(inner, "env_fns", ())]
        if not made:
            raise UsageError(
                f"{type(inner).__name__} has no accessible single environments: make text environments, for "
                "example with hunch.envs.TextWrapper, and pass them as a list."
            )
        return list(made)
    return list(place) if isinstance(place, Iterable) and not isinstance(place, gym.Env) else [place]


def identify(envs: Sequence[TextEnvironment]) -> tuple[str, dict[str, Any], bool]:
    """Return id and options of environments, and whether these suffice to rebuild the environments."""
    if not envs:
        return "", {}, False
    found = [_identify(env) for env in envs]
    return *found[0][:2], all(each == found[0] and each[2] for each in found)


def _identify(env: TextEnvironment) -> tuple[str, dict[str, Any], bool]:
    spec = env.spec
    if spec is None:
        return name_of(env), {}, False
    wrappers = layers(env)[:-1]
    histories = [layer.n for layer in wrappers if isinstance(layer, hunch.envs.History)]
    options = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    n = histories[0] if histories else 0
    if n != env.metadata.get("history", 0):
        options["history"] = n
    options |= changed(env)
    again = all(map(_is_usual, wrappers)) and len(histories) <= 1 and _is_plain(options)
    return hunch.envs.full_id(spec), options if again else {}, again


def _is_usual(layer: TextEnvironment) -> bool:
    """Return whether making the environment by its id also adds this wrapper."""
    if isinstance(layer, TimeLimit):
        registered = gym.registry.get(layer.spec.id) if layer.spec else None
        return bool(registered and registered.max_episode_steps == layer._max_episode_steps)
    return isinstance(layer, (hunch.envs.History, OrderEnforcing, PassiveEnvChecker)) or hasattr(
        layer, "option"
    )


def _is_plain(options: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(json.dumps(options)) == options)
    except (TypeError, ValueError):
        return False
