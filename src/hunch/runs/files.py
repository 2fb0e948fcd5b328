"""Reads and writes the files of a run; damage and full disks give one clear sentence.

Files are written atomically. Every file ends with its checksum, as does every line of a growing file
(:mod:`hunch.seal`), so damage is detected before loading, also after a run was killed.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hunch.core import HunchError
from hunch.seal import fits, read_sealed_json, sealed_json

REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than this process may write",
    errno.EACCES: "permission is denied",
    errno.EROFS: "the disk is read-only",
    errno.ENOTDIR: "it is not a folder",
    errno.EEXIST: "it is not a folder",
    errno.ELOOP: "it is a link",
}
LONGEST_LINE = 65_536
"""Maximum length in bytes of the last line of a file, when that line is searched for."""


# ---- writing ---------------------------------------------------------------------------------------------


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the operating system in this block into one clear sentence."""
    try:
        yield
    except OSError as error:
        raise HunchError(
            f"Cannot write {path}: {_reason(error)}. Everything saved before is intact."
        ) from error


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Replace a file atomically: readers see the old or the new contents, even after a crash."""
    temporary = path.with_name(path.name + ".tmp")
    with writing(path):
        try:
            with suppress(FileNotFoundError):
                temporary.unlink()  # of a killed process, or a link, whose target must not be overwritten
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:  # Ctrl-C, too
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


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object atomically, with its checksum."""
    write_atomically(path, sealed_json(value, indent=2))


# ---- reading ---------------------------------------------------------------------------------------------


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an error of the operating system in this block into one sentence; the file is not damaged."""
    try:
        yield
    except OSError as error:
        raise HunchError(f"Cannot read {path}: {_reason(error)}.") from error


def _reason(error: OSError) -> str:
    """Return why the operating system refused, in a few words."""
    return REASONS.get(error.errno or 0, error.strerror or str(error))


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object without its checksum; None if there is no such file.

    Raises:
        HunchError: if the file is damaged or cannot be read.
    """
    with reading(path):
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
    try:
        value: dict[str, Any] = read_sealed_json(data)
    except (ValueError, RecursionError) as error:
        raise HunchError(f"{path} is damaged: {error}.") from error
    if not isinstance(value, dict):
        raise HunchError(f"{path} is damaged: it does not contain a JSON object.")
    return value


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the complete lines of a JSON-lines file without their checksums; empty if there is no file.

    Raises:
        HunchError: if a line is damaged, or the file cannot be read.
    """
    with reading(path):
        if not path.exists():
            return []
        data = path.read_bytes()
    *complete, rest = data.split(b"\n")
    if fits(rest[:-1] + b"\n"):  # not what a kill leaves: the line is whole, and its end was changed
        complete.append(rest)
    return [_read_line(path, number, line + b"\n") for number, line in enumerate(complete, 1) if line]


def _read_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        value: dict[str, Any] = read_sealed_json(line)
    except (ValueError, RecursionError) as error:
        raise HunchError(f"Line {number} of {path} is damaged: {error}.") from error
    if not isinstance(value, dict):
        raise HunchError(f"Line {number} of {path} is damaged: it holds no JSON object.")
    return value


def last_line(path: Path) -> dict[str, Any] | None:
    """Return the last complete line of a JSON-lines file; None if there is none or it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_LINE))
            complete = file.read().split(b"\n")[:-1]
        value: dict[str, Any] | None = read_sealed_json(complete[-1] + b"\n") if complete else None
    except (OSError, ValueError):
        return None
    return value


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return values as JSON would return them; values that JSON cannot hold become their ``repr``."""
    read: dict[str, Any] = json.loads(json.dumps(value, default=repr))
    return read
