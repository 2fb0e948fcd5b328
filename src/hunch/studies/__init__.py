"""The published tables and figures, as recipes that can be run again: ``hunch study NAME``."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from hunch.core import UsageError
from hunch.studies.study import Study

_MODULES = {
    "abilities": "abilities",
    "icpi": "icpi",
    "priors-online": "priors",
    "priors-k": "priors",
    "priors-temperature": "priors",
    "priors-cache": "priors",
    "priors-offline": "priors_offline",
    "priors-transfer": "priors_transfer",
    "priors-encoder": "priors_encoder",
}


def names() -> tuple[str, ...]:
    """Return the names of the studies."""
    return tuple(_MODULES)


def find(name: str) -> Study:
    """Return the study of that name.

    Raises:
        UsageError: if there is none, naming near matches.
    """
    if name not in _MODULES:
        near = get_close_matches(name, _MODULES, n=2, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(_MODULES)}."
        raise UsageError(f"There is no study called {name!r}; {hint}")
    studies: dict[str, Study] = import_module(f"hunch.studies.{_MODULES[name]}").STUDIES
    return studies[name]
