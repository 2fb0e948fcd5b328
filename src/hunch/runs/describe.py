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
from hunch.lm.asking import AskConfig
from hunch.lm.base import LanguageModel
from hunch.lm.registry import kinds
from hunch.methods import Method, of
from hunch.roles import (
    DecisionPrior,
    LabelledPrior,
    LikelihoodPrior,
    MappedPrior,
    NoveltyPrior,
    PriorConfig,
    SimilarityPrior,
    UniformPrior,
    build_prior,
)
from hunch.runs.files import plain

_WAYS: dict[type[Any], Any] = {
    UniformPrior: "uniform",
    NoveltyPrior: "novelty",
    DecisionPrior: "decision",
    MappedPrior: "text",
    LikelihoodPrior: "likelihood",
    LabelledPrior: "label",
    SimilarityPrior: "similarity",
}


class Description(NamedTuple):
    """The description of an agent; ``method`` is the class name if settings cannot rebuild the agent."""

    method: str
    lm: str
    options: Any
    again: bool


def describe(agent: Agent) -> Description:
    """Describe an agent by a method's name, the spec of its model and the method's options."""
    models = agent.models
    method = of(agent)
    found = _options(agent, method, models) if method and can_be_loaded(models) else None
    if method is None or found is None:
        lm = models["lm"].name if "lm" in models else ""
        return Description(type(agent).__name__, lm, plain(dict(agent.settings)), False)
    lm = getattr(found, "lm", "") or (models["lm"].name if "lm" in models else "")
    default = "uniform" if method.models.get("lm") else ""
    return Description(method.name, lm or default, found, True)


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
    """Return the settings that rebuild an action prior, or None."""
    if type(prior) not in _WAYS:
        return None
    own = {
        entry.name: getattr(prior, entry.name) for entry in fields(PriorConfig) if hasattr(prior, entry.name)
    }
    if hasattr(prior, "asks"):
        own |= {entry.name: getattr(prior.asks, entry.name) for entry in fields(AskConfig)}
    way = _WAYS[type(prior)]
    if getattr(prior, "structured", False):
        way = "structured"
    elif not getattr(prior, "listed", True):
        way = f"{way}-unlisted"
    exact = PriorConfig(way=way, **own)
    return next((config for config in (stated, exact) if _makes(config, prior, lm)), None)


def _makes(config: PriorConfig, prior: Any, lm: LanguageModel | None) -> bool:
    if lm is None:  # a prior without a model
        lm = UniformModel()
    try:
        made = build_prior(config, lm)
    except UsageError:
        return False
    return type(made) is type(prior) and _visible(made) == _visible(prior)


def _visible(part: Any) -> dict[str, Any]:
    """Return the public attributes of a role's object; its evidence follows from the model."""
    told = {
        name: value for name, value in vars(part).items() if not name.startswith("_") and name != "evidence"
    }
    return {name: getattr(value, "lm", value) if name == "table" else value for name, value in told.items()}
