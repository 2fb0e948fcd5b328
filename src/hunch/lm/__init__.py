"""Language models behind one protocol, with a cache and a meter. See ``docs/models.md``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hunch.lm.answers.cache import Cached
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
from hunch.lm.prompts import Message, Prompt, picture
from hunch.lm.registry import PER_USER, Backend, kinds, load, require
from hunch.lm.settings import AskConfig
from hunch.lm.usage import Usage

if TYPE_CHECKING:
    from hunch.lm.answers.reading import read_option
    from hunch.lm.answers.store import Store
    from hunch.lm.backends.uniform import UniformModel
    from hunch.lm.probe import Description, describe
    from hunch.lm.scoring.choose import Choice, choose
    from hunch.lm.tuning import trainable

__all__ = [
    "ONE_LINE",
    "PER_USER",
    "AskConfig",
    "Backend",
    "Budget",
    "BudgetError",
    "Cached",
    "Choice",
    "Description",
    "LanguageModel",
    "Message",
    "Normalisation",
    "OptionScores",
    "Prompt",
    "Sampling",
    "Store",
    "UniformModel",
    "Usage",
    "Verb",
    "choose",
    "describe",
    "kinds",
    "listed_options",
    "load",
    "picture",
    "read_option",
    "require",
    "trainable",
]


_HOMES = {
    "Choice": "scoring.choose",
    "choose": "scoring.choose",
    "Description": "probe",
    "describe": "probe",
    "read_option": "answers.reading",
    "Store": "answers.store",
    "trainable": "tuning",
    "UniformModel": "backends.uniform",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
