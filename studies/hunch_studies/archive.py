"""The results of a study in one file that outlives its folder, for example in a repository.

The file is a tar archive compressed with xz. It holds the JSON files of each part: rows, and finished runs
with their settings, metrics, episodes and summaries. It has no checkpoints, so an agent cannot be evaluated
or trained further from it. Equal results give equal bytes.
"""

from __future__ import annotations

import io
import lzma
import os
import tarfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from hunch.core import HunchError, UsageError
from hunch.runs.files import write_atomically
from hunch.runs.folder import JOURNAL
from hunch.runs.stored import finished

ENDING: Final = ".tar.xz"
RESULTS: Final = (".json", ".jsonl")
"""Endings of the files that are kept."""


@contextmanager
def archived(archive: Path, out: Path, parts: Collection[str]) -> Iterator[int]:
    """Restore a study's results from an archive; at the end of the ``with`` block add those of its folder.

    What the folder has already is not replaced. Unfinished runs are not archived. The results are added also
    if the block is left by an error or by Ctrl-C. Commands that share a folder may share an archive.

    Args:
        archive: The file; it is made if there is none.
        out: The study's folder.
        parts: Names of the folders of all parts of the study.

    Yields:
        The number of restored runs.

    Raises:
        HunchError: if the archive is damaged.
        UsageError: if its name has another ending, its folder does not exist, or it is another study's or
            that of another size.
    """
    if not archive.name.endswith(ENDING):
        raise UsageError(f"The name of an archive of results ends in {ENDING}, unlike {archive.name!r}.")
    if not archive.parent.is_dir():
        raise UsageError(f"There is no folder {str(archive.parent)!r} for the archive.")
    held = _read(archive)
    for name in held:
        path = PurePosixPath(name)
        if path.parts[0] not in parts or ".." in path.parts or path.suffix not in RESULTS:
            raise UsageError(f"{archive} holds results of another study or size, such as {name}.")
    missing = [name for name in held if not ((out / name).exists() or _is_run((out / name).parent))]
    for name in missing:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out / name, held[name])
    try:
        yield sum(name.endswith("/config.json") for name in missing)
    finally:
        found = {
            path.relative_to(out).as_posix(): path.read_bytes()
            for part in parts
            for path in _results(out / part)
        }
        if found:
            write_atomically(archive, _packed(_read(archive) | found))


def _is_run(folder: Path) -> bool:
    return (folder / "config.json").exists()


def _results(folder: Path) -> Iterator[Path]:
    """Yield the files with results below a folder."""
    for place, below, names in os.walk(folder):
        here = Path(place)
        if _is_run(here):
            below.clear()
            if not _complete(here):
                continue
        yield from (here / name for name in names if name.endswith(RESULTS) and name != JOURNAL)


def _complete(run: Path) -> bool:
    with suppress(HunchError):  # damage is reported where the run is read
        return finished(run) is not None
    return False


def _read(archive: Path) -> dict[str, bytes]:
    """Return the files of an archive by name; none if there is no archive yet."""
    if not archive.exists():
        return {}
    try:
        # The whole is read first, for its checksum: tar does not read that far.
        whole = lzma.decompress(archive.read_bytes())
        with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
            return {entry.name: file.read() for entry in tar if (file := tar.extractfile(entry))}
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        raise HunchError(f"{archive} is damaged, or no archive of results: {error}.") from error


def _packed(files: dict[str, bytes]) -> bytes:
    """Return an archive that depends on nothing but names and contents."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
