"""Reads folders of model files; :mod:`hunch.lm.backends.folders` finds and identifies them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hunch.core import HunchError, UsageError
from hunch.text_files import read_lines

CARD = "trained_on.jsonl"
"""Name of the file in a model's folder with one line per training; the revision does not depend on it."""
SUMS = "checksums.sha256"
"""Name of the file with checksums of the other files in a folder, in the format of ``sha256sum``."""
DTYPES = ("float32", "bfloat16", "float16")


def trained_on(folder: Path) -> list[dict[str, Any]]:
    """Return the trainings in a model's card, oldest first; empty without a card.

    Each entry has the name of the corpus, and in ``games`` a pattern of the names of its games
    (:mod:`fnmatch`), empty if there are none.

    Raises:
        HunchError: if the card cannot be read.
    """
    card = folder / CARD
    try:
        return [json.loads(line) for line in read_lines(card)] if card.is_file() else []
    except (OSError, ValueError) as error:
        raise HunchError(f"{card} cannot be read: it should have one line of JSON per training.") from error


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read(folder: Path, head: str, device: str, dtype: str) -> tuple[Any, Any]:
    """Return the tokenizer and the network of a folder, the network in evaluation mode.

    Args:
        folder: The model's files, or a GGUF file.
        head: The class of the transformers library that reads it, such as ``"AutoModel"``.
        device: Device of torch.
        dtype: Number format: float32, bfloat16 or float16.

    Raises:
        UsageError: for a device or dtype that does not exist here.
        HunchError: if a library is missing, the model is incomplete, or one of its files has changed.
    """
    if dtype not in DTYPES:
        raise UsageError(f"There is no dtype {dtype!r} for models; there are {', '.join(DTYPES)}.")
    torch, transformers = libraries()
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"There is no device {device!r} here to load a model on.") from error
    _check(folder)
    if folder.is_file():
        from hunch.lm.backends import gguf_weights  # imports this module

        tokenizer, network, report = gguf_weights.read(folder, head, getattr(torch, dtype))
    else:
        try:
            with quietly():
                tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
                network, report = getattr(transformers, head).from_pretrained(
                    str(folder), dtype=getattr(torch, dtype), output_loading_info=True
                )
        except Exception as error:  # transformers raises almost anything for a folder that it cannot read
            raise HunchError(
                f"The folder {folder} holds no model that can be loaded ({brief(error)})."
            ) from error
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:  # transformers would draw them at random
        raise HunchError(f"The model in {folder} lacks {len(missing)} of its weights, such as {missing[0]}.")
    return tokenizer, network.to(device).eval()


def _check(folder: Path) -> None:
    sums = (folder / SUMS).read_text("latin-1") if (folder / SUMS).is_file() else ""
    for digest, _, name in (line.partition("  ") for line in sums.splitlines()):
        if not (folder / name).is_file() or sha256(folder / name) != digest:
            what = f"{folder / name} does not match its checksum in {SUMS}: one of the two is damaged"
            raise HunchError(f"{what}. If you changed the file, delete {SUMS}.")


def libraries() -> tuple[Any, Any]:
    """Import and return torch and transformers.

    Raises:
        HunchError: if either is missing; the message names the extra to install.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise lacks_library(error) from error
    return torch, transformers


def lacks_library(error: ImportError) -> HunchError:
    """Return an error that names the extra that installs the missing library."""
    from hunch.extras import NO_MEMORY, install

    if any(words in str(error) for words in NO_MEMORY):  # it was found and does not fit
        return HunchError("This model's libraries need more memory than there is.")
    return HunchError(f"This model needs {error.name or 'transformers'}: {install('hf')}.")


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress progress bars and loading messages of the transformers library."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def brief(error: Exception) -> str:
    """Return the first line of an error."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
