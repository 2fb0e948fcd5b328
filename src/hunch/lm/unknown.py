"""What to say where no model has a name or an option, or a model lacks a verb."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hunch.core import UsageError
from hunch.extras import of_studies
from hunch.lm.base import LanguageModel, Verb
from hunch.suggest import suggest

OF_STUDIES: Final = ("scripted", "tfidf", "random-words", "random-network")


def no_model(head: str, patterns: Mapping[str, str]) -> UsageError:
    """Return the error for a spec of no kind of model, with similar names.

    Args:
        head: The spec without options.
        patterns: The form of the specs of each kind.
    """
    kind, _, argument = head.partition(":")
    if kind in OF_STUDIES:
        return of_studies(f"The model {head!r}")
    if not argument and "/" in head:
        return UsageError(f"There is no model called {head!r}; did you mean 'hf:{head}'?")
    return UsageError(f"There is no model called {head!r}; {suggest(kind, patterns)}")


def no_option(kind: str, option: str, known: Iterable[str]) -> UsageError:
    """Return the error for an option that a kind of model lacks, with similar names."""
    return UsageError(f"The model {kind!r} has no option {option!r}; {suggest(option, known)}")


def no_verb(model: LanguageModel, verb: Verb, needed_by: str, able: Iterable[str]) -> UsageError:
    """Return the error for a model that lacks a verb, with kinds of models that are ``able``."""
    why = getattr(getattr(model, "model", model), "lacking", {}).get(verb, "")
    return UsageError(
        f"{needed_by} needs a model with the verb {verb!r}, but {model.name} only has "
        f"{', '.join(sorted(model.verbs))}; {verb!r} is offered by {', '.join(able)}."
        + (f" Tried when it was loaded: {why}" if why else "")
    )
