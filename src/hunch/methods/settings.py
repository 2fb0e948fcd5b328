"""Combines settings of methods, and finds the language models of their parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from hunch.core import Agent, UsageError
from hunch.lm.settings import with_digests
from hunch.ranges import check_settings
from hunch.suggest import suggest

Filling = TypeVar("Filling")


def configure(agent: type[Agent], config: Any, options: Mapping[str, Any]) -> Any:
    """Return the settings of an agent: a config, changed by single options and by what the method fixes.

    Args:
        agent: The agent's class, with ``config_class`` and ``fixed``.
        config: Initial settings; None for the defaults.
        options: Single settings to change.

    Raises:
        UsageError: on an unknown or fixed option, or a value out of range.
    """
    fixed = agent.fixed
    known = [entry.name for entry in fields(agent.config_class) if entry.name not in fixed]
    defaults = agent.config_class()
    config = config or defaults

    # What cannot be set: unknown options, fields of another method's config, and fixed settings.
    refused = [name for name in options if name not in known]
    if is_dataclass(config) and not fixed:
        every = {entry.name for entry in fields(defaults)}
        refused += [entry.name for entry in fields(config) if entry.name not in every]
    for name, value in fixed.items():
        if getattr(config, name, value) not in (value, getattr(defaults, name)):
            refused.append(name)
    if refused:
        raise UsageError(f"{agent.__name__} has no option {refused[0]!r}; {suggest(refused[0], known)}")

    config = replace(config, **{**options, **fixed})
    check_settings(config)
    return with_digests(config)


def models_of(**fillings: Any) -> dict[str, Any]:
    """Return the language models of the given roles by the option's name, leaving out empty roles."""
    models = {}
    for name, filling in fillings.items():
        # A role is filled by something that has a model, or that has a table of a model's embeddings.
        table = getattr(filling, "table", None)
        model = getattr(filling, "lm", None) or getattr(table, "lm", None)
        if model is not None:
            models[name] = model
    return models


def filled(filling: Filling, verb: str) -> Filling:
    """Return the argument if it has the method ``verb``, "propose" or "encode", which the role needs.

    Raises:
        UsageError: if the argument lacks the method, as a bare language model does.
    """
    if hasattr(filling, verb):
        return filling
    what = repr(filling)
    if hasattr(filling, "verbs"):
        what = f"the language model {getattr(filling, 'name', '')}"
    raise UsageError(f"{_PLACES[verb]}, not {what}.")


_PLACES: Final = {
    "propose": "The argument prior must be an action prior, such as hunch.roles.build_prior("
    "hunch.roles.PriorConfig(), lm) or hunch.roles.UniformPrior()",
    "encode": "The argument encoder must be a table of embeddings, such as hunch.roles.TextTable(lm)",
}
