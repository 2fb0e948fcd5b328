"""Language models behind one protocol, with a cache and a meter. See ``docs/models.md``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hunch.lm.names import *  # noqa: F403 - a stub, for type checkers

_FILES = {
    "answers.cache": "Cached",
    "answers.reading": "read_option",
    "answers.store": "Store",
    "backends.sampling": "listed_options",
    "backends.uniform": "UniformModel",
    "base": "LanguageModel Normalisation ONE_LINE OptionScores Sampling Verb",
    "budget": "Budget BudgetError",
    "pictures": "picture",
    "probe": "Description describe",
    "prompts": "Message Prompt",
    "registry": "Backend PER_USER kinds load require",
    "scoring.choose": "Choice choose",
    "settings": "AskConfig",
    "tuning": "trainable",
    "usage": "Usage",
}
_HOMES = {name: file for file, named in _FILES.items() for name in named.split()}
__all__ = sorted(_HOMES)

if not TYPE_CHECKING:  # so that a wrong name is an error of types

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
