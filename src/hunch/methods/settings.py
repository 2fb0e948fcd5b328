"""Combines settings of methods, and finds the language models of their parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from hunch.core import UsageError
from hunch.lm.asking import with_digests
from hunch.ranges import check_settings
from hunch.suggest import suggest

Filling = TypeVar("Filling")
Config = TypeVar("Config")


def configure(agent: Any, config: Any, options: Mapping[str, Any]) -> Any:
    """Return the settings of an agent: a config, changed by single options and what the method fixes.

    Args:
        agent: The agent's class, with ``config_class`` and ``fixed``.
        config: Initial settings; None for the defaults.
        options: Single settings to change.

    Raises:
        UsageError: on an unknown option, one that the method fixes, or a value out of range.
    """
    known = [entry.name for entry in fields(agent.config_class) if entry.name not in agent.fixed]
    for name in options:
        if name not in known:
            raise UsageError(f"{agent.__name__} has no option {name!r}; {suggest(name, known)}")
    config = replace(config or agent.config_class(), **{**options, **agent.fixed})
    check_settings(config)
    return with_digests(config)


def changed(config: Config, values: Mapping[str, Any], owner: str, prefix: str = "") -> Config:
    """Return settings with some of them changed; nested ones are dictionaries, and lists become tuples.

    Args:
        config: A dataclass of settings.
        values: The new values by name.
        owner: Whose settings they are, for an error.
        prefix: Prefix of the names in an error.

    Raises:
        UsageError: on an unknown name.
    """
    known, new = [entry.name for entry in fields(cast("Any", config))], {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"{owner} has no option {prefix}{name}; {suggest(name, known)}")
        inner = getattr(config, name)
        nested = is_dataclass(inner) and isinstance(value, Mapping)
        new[name] = changed(inner, value, owner, f"{prefix}{name}.") if nested else as_tuples(value)
    return cast("Config", replace(cast("Any", config), **new))


def as_tuples(value: Any) -> Any:
    """Return a value of a file with tuples in place of its lists."""
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def models_of(**fillings: Any) -> dict[str, Any]:
    """Return the language models that fill roles, by the option's name; empty roles are left out."""
    found = {name: _model_of(filling) for name, filling in fillings.items()}
    return {name: model for name, model in found.items() if model is not None}


def _model_of(filling: Any) -> Any:
    """Return the model that fills a role, directly or through a table of its embeddings."""
    return getattr(filling, "lm", None) or getattr(getattr(filling, "table", None), "lm", None)


def filled(filling: Filling, verb: str) -> Filling:
    """Return the argument if it can fill a role, which needs the method "propose" or "encode".

    Raises:
        UsageError: if it cannot, such as a bare language model.
    """
    if not hasattr(filling, verb):
        bare = hasattr(filling, "verbs")
        what = f"the language model {getattr(filling, 'name', '')}" if bare else repr(filling)
        raise UsageError(f"{_PLACES[verb]}, not {what}.")
    return filling


_PLACES = {
    "propose": "The argument prior must be an action prior, such as hunch.roles.build_prior("
    "hunch.roles.PriorConfig(), lm) or hunch.roles.UniformPrior()",
    "encode": "The argument encoder must be a table of embeddings, such as hunch.roles.TextTable(lm)",
}
