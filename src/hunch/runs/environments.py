"""The environments of a run: made by their id or given as objects, named, and checked before a run.

A run in ``config.json`` names its environments by id and options. A Python program may give objects instead;
:func:`identify` says whether id and options are enough to make them again.
"""

from __future__ import annotations

import copy
import json
import sysconfig
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

import hunch.envs
from hunch.core import HunchWarning, UsageError
from hunch.envs.offers import AsksModels, HasForms, HasOption, acts, declared
from hunch.lm.base import LanguageModel
from hunch.methods import Method
from hunch.rl.dataset import Dataset
from hunch.rl.rollout import TextEnvironment
from hunch.rl.world import attributes_told, name_of
from hunch.runs.config import RunConfig
from hunch.runs.data import READS

Place: TypeAlias = (
    "str | TextEnvironment | gym.vector.VectorEnv[Any, Any, Any] | Sequence[TextEnvironment] | None"
)
"""The ways in which a Python program can specify environments."""


# ---- named in the settings of a run ---------------------------------------------------------------------


def refuse_object(config: RunConfig) -> None:
    """Raise a UsageError if a run had an environment that was given as a Python object."""
    if "env" in config.objects:
        raise UsageError(
            f"The environment {config.env} was made in Python; settings cannot rebuild it. Play it in Python "
            "by 'hunch.evaluate(hunch.load(RUN), env)', or train on a name, such as 'mine:make_env' for a "
            "function make_env of mine.py, which the command finds, too."
        )


def refuse_installed_function(env: Any) -> None:
    """Refuse a function of an installed package that the settings in a file name as an environment.

    Such settings may be somebody else's, and a function could do anything with the options that they hold.

    Raises:
        UsageError: if it is one; the message says what to do.
    """
    module, _, name = env.rpartition(":") if isinstance(env, str) else ("", "", "")
    if not all(part.isidentifier() for part in module.split(".")):
        return
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return
    origin = getattr(spec, "origin", None) or ""
    folders = tuple(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
    if spec is None or not (origin.startswith(folders) or not origin.endswith(".py")):
        return
    maker = getattr(import_module(module), name, None)
    if maker is not None and not (isinstance(maker, type) and issubclass(maker, gym.Env)):
        raise UsageError(f"{env} is no class of environments, so settings of a file cannot name it.")


# ---- given by a Python program ---------------------------------------------------------------------------


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
        raise UsageError("Streams(options=...) need an id: pass options when you make an environment.")
    if n != 1:
        raise UsageError(
            "Streams(envs=...) makes several environments from an id; otherwise pass them as a list."
        )
    envs = _single(place)
    if len({id(env) for env in envs}) < len(envs):
        raise UsageError("The same environment is given twice: each stream needs its own.")
    for env in envs:
        if not isinstance(env, gym.Env):
            call = ": call it to make one" if callable(env) else ""
            raise UsageError(f"An environment must be an id or a Gymnasium environment, not {env!r}{call}.")
        hunch.envs.require_text(env)
    names = dict.fromkeys(map(name_of, envs))
    if len(names) > 1:
        raise UsageError(f"The streams of a run are in one environment, not in {' and '.join(names)}.")
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
    if isinstance(place, Iterable) and not isinstance(place, gym.Env):
        return list(place)
    return [place]


def identify(envs: Sequence[TextEnvironment]) -> tuple[str, dict[str, Any], bool]:
    """Return id and options of environments, and whether these suffice to rebuild the environments."""
    if not envs:
        return "", {}, False
    identities = [_identify(env) for env in envs]
    name, options, _ = identities[0]
    return name, options, all(each == identities[0] and each[2] for each in identities)


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
    if isinstance(layer, (hunch.envs.History, OrderEnforcing, PassiveEnvChecker)):
        return True
    return isinstance(layer, HasOption)


def _is_plain(options: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(json.dumps(options)) == options)
    except (TypeError, ValueError):
        return False


# ---- what an environment is made of ----------------------------------------------------------------------


def layers(env: TextEnvironment) -> list[TextEnvironment]:
    """Return an environment with all environments inside it, the outermost first."""
    listed = [env]
    while isinstance(listed[-1], gym.Wrapper):
        listed.append(listed[-1].env)
    return listed


def is_ours(env: TextEnvironment) -> bool:
    """Return whether an environment is made by a built-in id, and so fulfils the contract."""
    if env.spec is None or env.spec.id not in hunch.envs.names():
        return False
    return all(type(layer).__module__.startswith(("hunch.", "gymnasium.")) for layer in layers(env))


def changed(env: TextEnvironment) -> dict[str, Any]:
    """Return the options of :func:`hunch.envs.make` that correspond to the wrappers, besides the history."""
    options: dict[str, Any] = {}
    for layer in layers(env)[:-1]:
        options |= layer.option if isinstance(layer, HasOption) else {}
    return options


def shown(env: TextEnvironment) -> dict[str, Any]:
    """Return the options with which an environment was made, and what its wrappers change."""
    options = (dict(env.spec.kwargs) if env.spec else {}) | changed(env)
    if "picture" in options:
        options.pop("render_mode")
    return {**options, "history": env.n} if hasattr(env, "n") else options


def asked_by(env: TextEnvironment) -> dict[str, LanguageModel]:
    """Return the models that an environment or one of its wrappers asks, by name.

    Raises:
        UsageError: if one has no meter.
    """
    models: dict[str, Any] = {}
    for layer in layers(env):
        if not hasattr(layer, "models"):  # asked at every step, and the checks of protocols take long
            continue
        # An environment of others may mean something else by `models`.
        means_models = isinstance(layer, gym.Wrapper) or "models" in attributes_told(layer)
        if means_models and isinstance(layer, AsksModels) and isinstance(layer.models, Mapping):
            models |= layer.models
    for name, model in models.items():
        if not hasattr(model, "usage"):
            raise UsageError(f"The model {name} of {name_of(env)} has no meter: load it with hunch.lm.load.")
    return models


# ---- checks before a run ---------------------------------------------------------------------------------


def require_fit(method: Method, env: TextEnvironment) -> None:
    """Check that an environment has the actions that a method takes, and provides what the method reads.

    An environment without declarations is only refused if the method does not choose from listed actions.

    Raises:
        UsageError: if it does not fit; the message names method and environment.
    """
    offers = declared(env)
    name = name_of(env)
    takes = acts(offers)
    if method.acts != takes and (method.acts != "any" or takes == "program"):
        hint = _other_form(method, env, takes)
        raise UsageError(f"{method.name} {_ACTS[method.acts]}, and {name} takes {_TAKES[takes]}{hint}.")
    if offers is None or declared(env.unwrapped) is None:  # a wrapper names what it adds, and not the rest
        return
    lacking = sorted(method.reads - method.optional - offers)
    if lacking:
        own = _OWN_WORDING if lacking[0] == "wording" and not name.startswith("hunch/") else ""
        raise UsageError(f"{method.name} reads {READS[lacking[0]]}, and {name} offers none{own}.")


def _other_form(method: Method, env: TextEnvironment, takes: str) -> str:
    """Return how an environment comes to take what the method does, where it can; else an empty text."""
    if method.acts == "program":
        return ": use a design problem (hunch envs)"
    inner = env.unwrapped
    forms = inner.forms if isinstance(inner, HasForms) else {}
    if method.acts in forms:
        return f": add --env.{forms[method.acts]}"
    if method.acts == "text" and takes == "listed":
        return ": add --env.written true, and any text is an action"
    return ""


_OWN_WORDING = (
    ": give its class an attribute wording, an instance of a subclass of hunch.envs.icpi.texts.Texts, and "
    "name it in offers"
)
"""What makes an environment of one's own one for prompts about its steps."""
_ACTS = {
    "listed": "chooses from listed actions",
    "text": "writes any text",
    "program": "writes programs",
    "any": "writes or chooses texts",
}
_TAKES = {"listed": "listed actions", "text": "any text", "program": "programs"}

EXAMINED_SECONDS = 5.0
"""Approximate maximum duration of the check of one environment, in seconds."""
NEEDED = ("shape", "observation", "actions", "event", "reward", "end", "admissible", "seed", "copy")
"""Rules whose violation would make a run wrong; the other rules are for :func:`hunch.envs.check`."""


def examine(envs: Sequence[TextEnvironment]) -> None:
    """Check the contract of environments in a copy of each kind, so that no run trains on a faulty one.

    Built-in environments are tested elsewhere. An environment that asks a model, or that cannot be copied,
    is only checked during its steps.

    Raises:
        UsageError: if a rule is broken; the message names it.

    Warns:
        HunchWarning: if ``metadata["reproducible"]`` is False, which makes resuming inexact.
    """
    for env in _kinds(envs):
        if not env.metadata.get("reproducible", True):
            message = (
                f"{name_of(env)} does not repeat its episodes: rules of seeds and copies are not checked."
            )
            warnings.warn(message, HunchWarning, stacklevel=2)
        try:
            twin = copy.deepcopy(env)
        except Exception:  # a copy runs the environment's own code, which may raise anything
            continue
        try:
            hunch.envs.check(twin, episodes=1, seconds=EXAMINED_SECONDS)
        except hunch.envs.ContractError as broken:
            if broken.rule in NEEDED:
                raise UsageError(f"{name_of(env)} cannot be used. {broken}") from broken


def _kinds(envs: Iterable[TextEnvironment]) -> list[TextEnvironment]:
    """Return one environment of each kind that is not built in and asks no model."""
    foreign = [env for env in envs if not is_ours(env) and not asked_by(env)]
    return list({tuple(map(type, layers(env))): env for env in foreign}.values())
