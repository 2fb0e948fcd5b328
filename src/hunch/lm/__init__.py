"""Language models behind one protocol: four batched verbs, a cache, a meter. See ``docs/models.md``."""

from hunch.lm.base import (
    ONE_LINE,
    LanguageModel,
    Normalisation,
    OptionScores,
    Sampling,
    Verb,
    listed_options,
)
from hunch.lm.budget import Budget, BudgetError
from hunch.lm.cache import Cached
from hunch.lm.choose import Choice, choose
from hunch.lm.probe import Description, describe
from hunch.lm.registry import BACKENDS, PER_USER, load, require
from hunch.lm.scripted import RULES, ScriptedModel, rule
from hunch.lm.store import Store
from hunch.lm.uniform import UniformModel
from hunch.lm.usage import Usage

__all__ = [
    "BACKENDS",
    "ONE_LINE",
    "PER_USER",
    "RULES",
    "Budget",
    "BudgetError",
    "Cached",
    "Choice",
    "Description",
    "LanguageModel",
    "Normalisation",
    "OptionScores",
    "Sampling",
    "ScriptedModel",
    "Store",
    "UniformModel",
    "Usage",
    "Verb",
    "choose",
    "describe",
    "listed_options",
    "load",
    "require",
    "rule",
]
