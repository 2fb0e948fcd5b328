"""Language models behind one protocol, with a cache and a meter. See ``docs/models.md``."""

from typing import TYPE_CHECKING

from hunch import lazy

if TYPE_CHECKING:
    from hunch.lm.names import *  # noqa: F403 - a stub, for type checkers

_HOMES = lazy.homes(
    {
        "answers.cache": "Cached",
        "answers.reading": "read_option",
        "answers.store": "Store",
        "backends.sampling": "listed_options",
        "backends.scripted": "ScriptedModel",
        "backends.uniform": "UniformModel",
        "base": "Backend LanguageModel Normalisation OptionScores Verb",
        "budget": "Budget BudgetError Ledger",
        "pictures": "picture",
        "probe": "Description describe",
        "prompts": "Message Prompt",
        "registry": "PER_USER kinds load require",
        "rules": "rule",
        "decision": "DecisionQuestion",
        "scoring.choose": "Choice choose decide",
        "settings": "AskConfig",
        "speech": "ONE_LINE Sampling",
        "tuning": "trainable",
        "usage": "Usage",
    }
)
__all__ = sorted(_HOMES)

if not TYPE_CHECKING:  # so that a wrong name is an error of types
    __getattr__ = lazy.importer(__name__, _HOMES)
