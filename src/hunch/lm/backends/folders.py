"""Finds the folder of a model: a local folder, one inside the folder of a run, or one from the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hunch.core import HunchError, UsageError
from hunch.lm.backends.weights import brief, lacks_library

MODEL: Final = "model"
"""Folder inside the folder of a run with the model that the run trained."""


def find(name: str) -> Path:
    """Return the folder of a model: a local one, one inside the folder of a run, or a download from the hub.

    Raises:
        UsageError: if the name is a path without a folder.
        HunchError: if the hub does not have the model or cannot be reached.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return (folder / MODEL if (folder / MODEL / "config.json").is_file() else folder).resolve()
    require_name(name)
    return fetch(name)


def require_name(name: str) -> None:
    """Check that a name is not a path without a folder.

    Raises:
        UsageError: if it is such a path; the message names it.
    """
    path = name.startswith((".", "/", "~")) or name.count("/") > 1 or not name
    if path and not Path(name).expanduser().is_dir():
        raise UsageError(f"There is no folder {name!r} to load a model from.")


def fetch(repository: str) -> Path:
    """Return the local copy of a hub repository, downloading what is missing.

    Raises:
        HunchError: if there is no local copy, and the hub does not have it or cannot be reached.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise lacks_library(error) from error
    wanted = ["*.safetensors", "*.json", "*.model", "*.txt", "*.jinja"]
    try:
        folder = Path(snapshot_download(repository, allow_patterns=wanted, ignore_patterns=["*/*"]))
        if not any(folder.glob("*.safetensors")):
            snapshot_download(repository, allow_patterns=["*.bin"], ignore_patterns=["*/*"])
    except (OSError, ValueError) as error:
        raise HunchError(
            f"There is no folder {repository!r}, and the hub returned no such model ({brief(error)})."
        ) from error
    return folder
