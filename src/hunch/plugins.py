"""Entry points by which other packages extend Hunch: kinds of models, weights, commands and environments."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version


def installed(group: str) -> dict[str, EntryPoint]:
    """Return the installed entry points of a group, by name."""
    return {point.name: point for point in entry_points(group=group)}


@cache
def version_of(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
