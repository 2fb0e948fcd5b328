"""Reads files of a run that :mod:`hunch.runs.writing` wrote; a damaged file gives one clear error message."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hunch.core import HunchError, HunchWarning, UsageError
from hunch.runs.writing import CHECKPOINT
from hunch.seal import checked, fits, read_sealed_json


def read_checkpoint(folder: Path, which: Path = CHECKPOINT) -> dict[str, Any] | None:
    """Read a checkpoint of a run, by default the last one; None if there is none yet.

    Raises:
        HunchError: if the file is damaged.

    Warns:
        HunchWarning: if the file has no checksum.
    """
    import torch

    path = folder / which
    if not path.exists():
        return None
    try:
        data = path.read_bytes()
        known = checked(data)
        where = None if torch.cuda.is_available() else "cpu"  # an accelerator may have written it
        state: dict[str, Any] = torch.load(io.BytesIO(data), map_location=where, weights_only=True)
    except Exception as error:
        raise HunchError(f"The checkpoint {path} is damaged: remove it to start the run again.") from error
    if not known:
        unchecked = f"{path} is from a version without checksums, so damage in it would go unnoticed."
        warnings.warn(unchecked, HunchWarning, stacklevel=2)
    return state


@contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Turn errors of an agent that loads a checkpoint in this block into a UsageError of one sentence."""
    try:
        yield
    except HunchError:
        raise
    except Exception as error:
        raise UsageError(
            f"The agent in {path} cannot be loaded: another version of Hunch, or of the agent, wrote it "
            f"({type(error).__name__}: {error})."
        ) from error


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object without its checksum; None if there is no such file.

    Raises:
        HunchError: if the file is damaged.
    """
    try:
        value: dict[str, Any] = read_sealed_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, OSError) as error:
        raise HunchError(f"{path} is damaged: {error}.") from error
    if not isinstance(value, dict):
        raise HunchError(f"{path} is damaged: it does not contain a JSON object.")
    return value


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the complete lines of a JSON-lines file without their checksums; empty if there is no file.

    Raises:
        HunchError: if a line is damaged.
    """
    if not path.exists():
        return []
    *complete, rest = path.read_bytes().split(b"\n")
    if fits(rest[:-1] + b"\n"):  # not what a kill leaves: the line is whole, and its end was changed
        complete.append(rest)
    return [_read_line(path, number, line + b"\n") for number, line in enumerate(complete, 1) if line]


def _read_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        value: dict[str, Any] = read_sealed_json(line)
    except ValueError as error:
        raise HunchError(f"Line {number} of {path} is damaged: {error}.") from error
    if not isinstance(value, dict):
        raise HunchError(f"Line {number} of {path} is damaged: it holds no JSON object.")
    return value
