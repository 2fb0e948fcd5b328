"""Combines settings of methods, and finds the language models of their parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final, TypeVar

from hunch.core import Agent, Modelled, UsageError
from hunch.lm.settings import with_digests
from hunch.ranges import check_settings
from hunch.renamed import Renamed
from hunch.suggest import suggest

Filling = TypeVar("Filling")


def configure(agent: type[Agent], config: Any, options: Mapping[str, Any]) -> Any:
    """Return the settings of an agent: a config, changed by single options.

    Args:
        agent: The agent's class, with ``config_class``.
        config: Initial settings; None for the defaults.
        options: Single settings to change.

    Raises:
        UsageError: on an unknown option, a field of another method's config, or a value out of range.
    """
    config = config or agent.config_class()
    known = [entry.name for entry in fields(agent.config_class)]
    given = [*options, *(entry.name for entry in fields(config))]
    for name in given:
        if isinstance(config, Renamed) and name in config.renamed:
            raise UsageError(f"{agent.__name__}: {name} is now {config.renamed[name]}.")
        if name not in known:
            raise UsageError(f"{agent.__name__} has no option {name!r}; {suggest(name, known)}")
    config = replace(config, **options)
    check_settings(config)
    return with_digests(config)


def models_of(**fillings: Any) -> dict[str, Any]:
    """Return the language models of the given roles by the option's name, leaving out those without one."""
    models = {name: filling.lm for name, filling in fillings.items() if isinstance(filling, Modelled)}
    return {name: model for name, model in models.items() if model is not None}


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
