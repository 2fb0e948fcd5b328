"""Error messages for a spec that names no model, and for a model that lacks a required verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hunch.core import UsageError
from hunch.suggest import suggest

OF_STUDIES: Final = ("scripted", "tfidf", "random-words", "random-network")


def unknown(head: str, patterns: Mapping[str, str]) -> UsageError:
    """Return the error for a spec of unknown kind, given the patterns of the known kinds."""
    kind, _, argument = head.partition(":")
    if kind in OF_STUDIES:
        from hunch.extras import of_studies

        return of_studies(f"The model {head!r}")
    near = f"did you mean 'hf:{head}'?" if not argument and "/" in head else suggest(kind, patterns)
    return UsageError(f"There is no model called {head!r}; {near}")


def incapable(model: Any, verb: str, needed_by: str, able: Sequence[str]) -> UsageError:
    """Return the error for a model that lacks a verb, given the kinds that offer it."""
    why = getattr(getattr(model, "model", model), "lacking", {}).get(verb, "")
    return UsageError(
        f"{needed_by} needs a model with the verb {verb!r}, but {model.name} only has "
        f"{', '.join(sorted(model.verbs))}; {verb!r} is offered by {', '.join(able)}."
        + (f" Tried when it was loaded: {why}" if why else "")
    )
