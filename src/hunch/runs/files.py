"""Reads and writes files of a run: atomic writes, and one clear sentence if a file is damaged.

Every file ends with its checksum, and every line of a growing file with its own (:mod:`hunch.seal`), so
damage is seen before anything is loaded, also in what a killed run left.
"""

from __future__ import annotations

import errno
import io
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge

from hunch.core import HunchError, HunchWarning, UsageError
from hunch.seal import checked, fits, read_sealed_json, seal, sealed_json

REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than this process may write",
    errno.EACCES: "permission is denied",
    errno.EROFS: "the disk is read-only",
    errno.ENOTDIR: "it is not a folder",
    errno.EEXIST: "it is not a folder",
}
CHECKPOINT = Path("checkpoint") / "state.pt"
BEST = Path("checkpoint") / "best.pt"
"""The agent of the best evaluation so far."""
KEPT_AT = Path("checkpoints")
"""Folder of the agents that are kept, each in a folder named after its step."""
Checkpoint: TypeAlias = Literal["last", "best"] | Annotated[int, Ge(1)]
"""The state of an agent: at the end, at the best evaluation, or at a step of which it was kept."""


def file_of(checkpoint: Checkpoint) -> Path:
    """Return the file of a checkpoint in a run's folder."""
    return {"last": CHECKPOINT, "best": BEST}.get(str(checkpoint), KEPT_AT / str(checkpoint) / "agent.pt")


def kept_steps(folder: Path) -> list[int]:
    """Return the steps of which a run keeps the agent, in order."""
    there = (file.parent.name for file in (folder / KEPT_AT).glob("*/agent.pt"))
    return sorted(int(name) for name in there if name.isdecimal())


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one clear sentence."""
    try:
        yield
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        raise HunchError(f"Cannot write {path}: {reason}. Everything saved before is intact.") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file atomically: a reader sees the old or the new one, even after a crash."""
    temporary = path.with_name(path.name + ".tmp")
    with writing(path):
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()  # a partial file would keep a full disk full
            raise
        sync_entries(path.parent)


def sync_entries(folder: Path) -> None:
    """Flush a folder's directory entries to disk; file contents are flushed separately."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    entries = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(entries)
    finally:
        os.close(entries)


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a state of tensors and plain values atomically."""
    import torch

    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.write(seal(buffer.getvalue()))
    write_atomically(path, buffer.getvalue())


def read_checkpoint(folder: Path, which: Path = CHECKPOINT) -> dict[str, Any] | None:
    """Read a run's last checkpoint, or its best one; None if there is none yet.

    Raises:
        HunchError: if it is damaged.

    Warns:
        HunchWarning: if it has no checksum.
    """
    import torch

    path = folder / which
    if not path.exists():
        return None
    try:
        data = path.read_bytes()
        known = checked(data)
        state: dict[str, Any] = torch.load(io.BytesIO(data), weights_only=True)
    except Exception as error:
        raise HunchError(f"The checkpoint {path} is damaged: remove it to start the run again.") from error
    if not known:
        unchecked = f"{path} is from a version without checksums, so damage in it would go unnoticed."
        warnings.warn(unchecked, HunchWarning, stacklevel=2)
    return state


@contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Turn the error of an agent that cannot load a checkpoint into one clear sentence: a UsageError."""
    try:
        yield
    except HunchError:
        raise
    except Exception as error:
        raise UsageError(
            f"The agent in {path} cannot be loaded: another version of Hunch, or of the agent, wrote it "
            f"({type(error).__name__}: {error})."
        ) from error


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return values as JSON would return them; values unknown to JSON become their ``repr``."""
    read: dict[str, Any] = json.loads(json.dumps(value, default=repr))
    return read


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object atomically, with its checksum."""
    write_atomically(path, sealed_json(value, indent=2))


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
    """Read the complete lines of a JSON-lines file in order, without their checksums; empty if there is none.

    Raises:
        HunchError: if one of them is damaged.
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
