"""Describes an agent made in Python by settings, so that the run's folder is like one of the command.

An agent of a registered method is described by the method's options and the specs of its models. The
description is checked: the agent that it builds must equal the given one. Otherwise the run is
saved as one that settings cannot rebuild.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from hunch.core import Agent, UsageError
from hunch.lm import UniformModel
from hunch.lm.base import LanguageModel
from hunch.lm.registry import kinds
from hunch.methods import Method, of
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.kinds import PriorConfig, build_prior, settings_of
from hunch.runs.files import plain


class Description(NamedTuple):
    """The description of an agent; ``method`` is the class name if settings cannot rebuild the agent."""

    method: str
    lm: str
    options: Any
    again: bool


def describe(agent: Agent) -> Description:
    """Describe an agent by a method's name, the spec of its model and the method's options."""
    models = agent.models
    named = models["lm"].name if "lm" in models else ""
    method = of(agent)
    options = None
    if method and can_be_loaded(models):
        options = _options(agent, method, models)
    if method is None or options is None:
        return Description(type(agent).__name__, named, plain(dict(agent.settings)), again=False)
    lm = named
    if "lm" in method.config_class.__dataclass_fields__ and options.lm:  # the model that is trained
        lm = options.lm
    if not lm and method.models.get("lm"):
        lm = "uniform"
    return Description(method.name, lm, options, again=True)


def can_be_loaded(models: Mapping[str, LanguageModel]) -> bool:
    """Return whether the names of models are specs of known kinds."""
    return all(model.name.partition("?")[0].partition(":")[0] in kinds() for model in models.values())


def _options(agent: Any, method: Method, models: Mapping[str, LanguageModel]) -> Any:
    """Return the options that rebuild the agent, or None."""
    options = agent.config
    names = {entry.name for entry in fields(options)}
    if "encoder" in names and "encoder" in models and models["encoder"].name != options.encoder:
        options = replace(options, encoder=models["encoder"].name)
    if not agent.from_settings:
        return None
    if "lm" not in method.models or "prior" not in names:
        return options
    prior = _prior(agent.prior, options.prior, models.get("lm"))
    return None if prior is None else replace(options, prior=prior)


def _prior(prior: Any, stated: PriorConfig, lm: LanguageModel | None) -> PriorConfig | None:
    """Return the settings that rebuild an action prior, the agent's own first; None if none do."""
    settings = settings_of(prior)
    if settings is None:
        return None
    for config in (stated, settings):
        if _makes(config, prior, lm):
            return config
    return None


def _makes(config: PriorConfig, prior: Any, lm: LanguageModel | None) -> bool:
    """Return whether a prior is what these settings make."""
    if lm is None:  # a prior without a model
        lm = UniformModel()
    try:
        made = build_prior(config, lm)
    except UsageError:
        return False
    return type(made) is type(prior) and _visible(made) == _visible(prior)


def _visible(prior: Any) -> dict[str, Any]:
    """Return the public attributes of a prior; its evidence follows from the model."""
    visible: dict[str, Any] = {}
    for name, value in vars(prior).items():
        if name.startswith("_") or name == "evidence":
            continue
        visible[name] = value.lm if isinstance(value, TextTable) else value
    if "asks" in visible and "temperature" in visible:  # the prior's own temperature counts
        visible["asks"] = replace(visible["asks"], temperature=None)
    return visible
