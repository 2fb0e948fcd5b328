"""What other packages add to Hunch by entry points: kinds of models, weights, commands and environments.

The repository has two such packages beside this one: the studies, which are not published, and weights of
pocket models. Where one is missing, or a library of an extra, an error says how to get it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points, version
from typing import Any
from urllib.parse import unquote, urlsplit

from hunch.core import UsageError


def installed(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group that are installed, by name."""
    return {point.name: point for point in entry_points(group=group)}


def of_studies(part: str) -> UsageError:
    """Return the error for a part of the studies where they are not installed, with how to get them."""
    return UsageError(
        f"{part} comes with the studies, which are not in this package: "
        "get a checkout of Hunch and run 'make setup' there."
    )


def of_pocket(part: str) -> UsageError:
    """Return the error for weights whose package is not installed, with how to get it."""
    return UsageError(
        f"{part} comes with hunch-rl-pocket, which is not installed: "
        "get a checkout of Hunch and run 'pip install ./pocket' there."
    )


def library(name: str, sentence: str, extra: str) -> Any:
    """Import and return an optional module.

    Raises:
        UsageError: if it is missing: the sentence, and the command that installs its extra.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(f"{sentence}: {install(extra)}.") from error


@cache
def version_of(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def install(extra: str) -> str:
    """Return the command that adds an extra to this Hunch: by the path of its clone or wheel, or by name."""
    origin = json.loads(distribution("hunch-rl").read_text("direct_url.json") or "{}")
    place = unquote(urlsplit(origin.get("url", "")).path) or "hunch-rl"
    return f"pip install {'-e ' if origin.get('dir_info', {}).get('editable') else ''}'{place}[{extra}]'"
