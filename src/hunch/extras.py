"""Errors for libraries that are not installed, with the command that installs them.

Three packages of the repository are separate: more methods, weights of pocket models, and the unpublished
studies.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import distribution
from typing import Any
from urllib.parse import unquote, urlsplit

from hunch.core import UsageError
from hunch.little_memory import is_lack_of_memory


class NotInstalledError(UsageError):
    """A package or a part of one is not installed; the message has the command that installs it."""


def of_studies(part: str) -> NotInstalledError:
    """Return the error for a missing part of the studies, with the command that installs it."""
    return NotInstalledError(
        f"{part} comes with the studies, which are not in this package: "
        "get a checkout of Hunch and run 'make setup' there."
    )


def of_contrib(method: str) -> NotInstalledError:
    """Return the error for a method of hunch-rl-contrib, with the command that installs it."""
    return NotInstalledError(f"{method} is in the package hunch-rl-contrib: {install_contrib()}.")


def of_pocket(part: str) -> NotInstalledError:
    """Return the error for missing weights of a pocket model, with the command that installs them."""
    return NotInstalledError(
        f"{part} comes with hunch-rl-pocket, which is not installed: "
        "get a checkout of Hunch and run 'pip install ./pocket' there."
    )


def library(name: str, sentence: str, extra: str) -> Any:
    """Import and return an optional module.

    Raises:
        NotInstalledError: if it is missing; the message is ``sentence`` with the command that installs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        if is_lack_of_memory(error):  # it was found and does not fit
            raise MemoryError(str(error)) from error
        raise NotInstalledError(f"{sentence}: {install(extra)}.") from error


def install(extra: str) -> str:
    """Return the command that adds an extra to the installed Hunch, by path (clone or wheel) or by name."""
    place, editable = _origin()
    return f"pip install {editable}'{place or 'hunch-rl'}[{extra}]'"


def install_contrib() -> str:
    """Return the command that installs hunch-rl-contrib, from the folder of this Hunch or by name."""
    place, editable = _origin()
    beside = place and not place.endswith((".whl", ".tar.gz"))
    return f"pip install {editable}'{place}/contrib'" if beside else "pip install hunch-rl-contrib"


def _origin() -> tuple[str, str]:
    """Return the path that Hunch was installed from, empty for an index, and pip's flag for a clone."""
    origin = json.loads(distribution("hunch-rl").read_text("direct_url.json") or "{}")
    place = unquote(urlsplit(origin.get("url", "")).path)
    return place, "-e " if origin.get("dir_info", {}).get("editable") else ""
