"""Methods of other packages: entry points of the group ``hunch.methods``, and paths ``MODULE:NAME``."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint
from pkgutil import resolve_name

from hunch.core import HunchError
from hunch.methods.method import Method
from hunch.plugins import installed

GROUP = "hunch.methods"
"""The entry-point group of methods."""


@cache
def added() -> dict[str, Method]:
    """Return the methods that entry points add, by name.

    Raises:
        HunchError: if a method cannot be imported, or is not a :class:`Method`.
    """
    return {name: plugin(point) for name, point in installed(GROUP).items()}


def plugin(point: EntryPoint) -> Method:
    """Import and return the method of an entry point; a HunchError if its name is already taken."""
    from hunch.methods import OURS

    found = read(point.value, HunchError)
    if point.name in OURS or found.name != point.name:
        raise HunchError(f"{point.value} must be a new hunch.methods.Method called {point.name}.")
    return found


def read(place: str, error: type[HunchError]) -> Method:
    """Import and return the method at ``module:NAME``; ``module:`` is short for ``module:METHOD``."""
    try:
        found = resolve_name(f"{place}METHOD" if place.endswith(":") else place)
    except Exception as problem:  # the import of a package may raise anything
        told = f"{type(problem).__name__}: {problem}"
        raise error(f"The method {place} cannot be imported: {told}.") from problem
    if not isinstance(found, Method):
        raise error(f"{place} must be a new hunch.methods.Method, not {found!r}.")
    return found
