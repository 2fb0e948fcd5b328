"""Combines settings of methods, and finds the language models of their parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from hunch.core import UsageError
from hunch.lm.settings import with_digests
from hunch.ranges import check_settings
from hunch.suggest import suggest

Filling = TypeVar("Filling")


def configure(agent: Any, config: Any, options: Mapping[str, Any]) -> Any:
    """Return the settings of an agent: a config, changed by single options and by what the method fixes.

    Args:
        agent: The agent's class, with ``config_class`` and optionally ``fixed``.
        config: Initial settings; None for the defaults.
        options: Single settings to change.

    Raises:
        UsageError: on an unknown or fixed option, or a value out of range.
    """
    fixed: Mapping[str, Any] = getattr(agent, "fixed", {})
    known = [entry.name for entry in fields(agent.config_class) if entry.name not in fixed]
    usual, config = agent.config_class(), config or agent.config_class()
    moved = [n for n, own in fixed.items() if getattr(config, n) not in (own, getattr(usual, n))]
    for name in (*options, *moved):
        if name not in known:
            raise UsageError(f"{agent.__name__} has no option {name!r}; {suggest(name, known)}")
    config = replace(config, **{**options, **fixed})
    check_settings(config)
    return with_digests(config)


def models_of(**fillings: Any) -> dict[str, Any]:
    """Return the language models of the given roles by the option's name, leaving out empty roles."""
    found = {name: _model_of(filling) for name, filling in fillings.items()}
    return {name: model for name, model in found.items() if model is not None}


def _model_of(filling: Any) -> Any:
    """Return the model that fills a role, directly or through a table of its embeddings."""
    return getattr(filling, "lm", None) or getattr(getattr(filling, "table", None), "lm", None)


def filled(filling: Filling, verb: str) -> Filling:
    """Return the argument if it has the method ``verb``, "propose" or "encode", which the role needs.

    Raises:
        UsageError: if the argument lacks the method, as a bare language model does.
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
