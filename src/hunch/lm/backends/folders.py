"""Finds and identifies the folder of a model: a local one, one inside a run's folder, or one from the hub."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Final

from hunch.core import HunchError, UsageError
from hunch.lm.backends.weights import brief, lacks_library, sha256

MODEL: Final = "model"
"""Folder inside the folder of a run with the model that the run trained."""
GGUF: Final = ".gguf"
"""How the name of a file ends that holds a whole model; it takes the place of a folder."""
READ_BY_MODELS: Final = (".safetensors", ".bin", ".json", ".model", ".txt", ".jinja")


def find(name: str) -> Path:
    """Return the folder of a model: a local one, one inside the folder of a run, or a download from the hub.

    The name of a GGUF file gives that file.

    Raises:
        UsageError: if the name is a path without a folder or file.
        HunchError: if the hub does not have the model or cannot be reached.
    """
    folder = Path(name).expanduser()
    if folder.suffix == GGUF and folder.is_file():
        return folder.resolve()
    if folder.is_dir():
        return (folder / MODEL if (folder / MODEL / "config.json").is_file() else folder).resolve()
    require_name(name)
    return fetch(name)


def method_of_run(folder: Path) -> str:
    """Return the method of the run whose folder this is; empty if it is no run's."""
    try:
        run = json.loads((folder / "config.json").read_text(encoding="utf-8"))["run"]
        return str(run["method"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def require_name(name: str) -> None:
    """Check that a name is not a path without a folder.

    Raises:
        UsageError: if it is such a path; the message names it.
    """
    if name.endswith(GGUF):
        if not Path(name).expanduser().is_file():
            raise UsageError(f"There is no file {name!r} to load a model from.")
        return
    if Path(name).expanduser().is_file():
        raise UsageError(f"{name!r} is a file: hf: takes a folder or the name of a model, gguf: a GGUF file.")
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
            f"There is no folder {repository!r}, and the hub returned no such model ({brief(error)}). "
            "Without a network, name a folder with the model's files: hf:FOLDER."
        ) from error
    return folder


def fingerprint(folder: Path) -> str:
    """Return an identifier of a model's files: the hub's commit, or else a hash of names and contents."""
    if folder.is_file():
        return sha256(folder)[:16]
    if folder.parent.name == "snapshots" and re.fullmatch("[0-9a-f]{40}", folder.name):
        return folder.name[:16]
    files = sorted(file for file in folder.iterdir() if file.suffix in READ_BY_MODELS)
    parts = [f"{file.name} {file.stat().st_size} {sha256(file)}" for file in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
