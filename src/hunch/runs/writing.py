"""Writes files of a run atomically; an error of the operating system becomes one clear sentence.

Every file ends with its checksum, as does every line of a growing file (:mod:`hunch.seal`), so
damage is detected before loading, also after a run was killed. :mod:`hunch.runs.files` reads them.
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hunch.core import HunchError
from hunch.seal import seal, sealed_json

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
"""File of the agent of the best evaluation so far."""
KEPT_AT = Path("checkpoints")
"""Folder of kept checkpoints, each in a folder named after its step."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the operating system in this block into one clear sentence."""
    try:
        yield
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        raise HunchError(f"Cannot write {path}: {reason}. Everything saved before is intact.") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file atomically: readers see the old or the new contents, even after a crash."""
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
    """Write a state of tensors and plain values to a file, atomically."""
    import torch

    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.write(seal(buffer.getvalue()))
    write_atomically(path, buffer.getvalue())


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return values as JSON would return them; values that JSON cannot hold become their ``repr``."""
    read: dict[str, Any] = json.loads(json.dumps(value, default=repr))
    return read


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object atomically, with its checksum."""
    write_atomically(path, sealed_json(value, indent=2))
