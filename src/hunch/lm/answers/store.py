"""Answers on disk: one sqlite file, shared by processes, whose failure never stops a run.

A damaged file is renamed, and a new one starts with the answers that can still be read. If an answer cannot
be stored, because the disk is full or the file is locked, it stays in memory and is stored later. Either
problem is reported once, as a :class:`~hunch.core.HunchWarning`.
"""

from __future__ import annotations

import atexit
import errno
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from filelock import FileLock

from hunch.core import HunchWarning
from hunch.lm.answers.leases import Leases
from hunch.lm.answers.salvage import begin_again, means_damage
from hunch.lm.answers.table import (
    BUSY_SECONDS,
    CHECKED,
    INSERT,
    Key,
    Kind,
    among,
    checksum,
    connect,
    connect_to_read,
)
from hunch.plugins import version_of

T = TypeVar("T")
Row = tuple[Any, ...]

PAUSE_SECONDS = 30.0
"""Seconds without another attempt, after the file could not be used."""
LATER_SECONDS = 1.0
"""Maximum seconds to wait for a busy file, after an earlier wait failed."""
MOST_UNSAVED = 20_000
NO_WRITING = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of a folder that cannot be written. Its answers are read all the same."""
TOLD = """
CREATE TABLE IF NOT EXISTS told (
    model TEXT NOT NULL,
    revision TEXT NOT NULL,
    told TEXT NOT NULL,         -- what the server said of itself; no part of any key
    first TEXT NOT NULL,        -- UTC, when it was first seen
    PRIMARY KEY (model, revision, told)
)"""
"""What servers report about themselves, such as a fingerprint, beside their answers."""


class Source(NamedTuple):
    """The origin of answers, stored with each of them."""

    verb: Kind
    model: str
    revision: str
    told: str = ""


class Store:
    """A file of answers, opened at first use in each process.

    Do not put it on a network file system: sqlite's shared memory does not work there.
    """

    def __init__(self, path: str | Path) -> None:
        """Set the path; the file and its folder are created when the first answer is looked up."""
        self.path = Path(path).expanduser().absolute()
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process, self._inode = os.getpid(), 0
        self._waits_until = 0.0
        self._unsaved: dict[Key, Row] = {}
        self._warned = False
        self._told: set[Source] = set()
        self._leases: Leases | None = None

    @property
    def leases(self) -> Leases:
        """The leases on questions that are being asked."""
        self._settle()
        with self._lock:
            self._leases = self._leases or Leases(partial(self._try, writing=True))
        return self._leases

    def _settle(self) -> None:
        """Start again in a forked process, where locks may be held by threads that no longer exist."""
        if self._process != os.getpid():
            _inherited.append(self._connection)
            self._begin()

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        return type(self), (self.path,)

    def read(self, keys: Sequence[Key]) -> dict[Key, str]:
        """Return the stored values among these keys, as JSON."""
        unsaved = {key: self._unsaved[key][2] for key in keys if key in self._unsaved}
        rows = self._try(partial(among, keys, "answers", ", ".join(CHECKED))) or []
        return dict(self._sound(rows)) | unsaved

    def write(
        self, answers: dict[Key, str], source: Source, questions: Mapping[Key, str] | None = None
    ) -> dict[Key, str]:
        """Store answers in one commit.

        Args:
            answers: The answers as JSON.
            source: Origin of the answers.
            questions: The requests in full, if they are to be stored too.

        Returns:
            The answers that another process had stored before; they take precedence.
        """
        if not answers:
            return {}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        origin = (source.verb, source.model, source.revision, version_of("hunch-rl") or "unknown", now)
        asked = (questions or {}).get
        rows = {
            key: (*key, value, checksum(key, value), *origin, asked(key)) for key, value in answers.items()
        }
        earlier = self._save(rows)
        if source.told and source not in self._told:
            self._told.add(source)
            self._try(partial(_note_origin, (source.model, source.revision, source.told, now)), writing=True)
        return {key: value for key, value in earlier.items() if key in rows}

    def remove(self, keys: Sequence[Key]) -> None:
        """Remove answers that cannot be read, so that their questions are asked again."""
        self._warn(f"An answer in the cache {self.path} is damaged and will be asked again.")
        self._try(partial(_remove, keys), writing=True)

    def _save(self, rows: dict[Key, Row]) -> dict[Key, str]:
        """Store rows, including those that failed before; return the answers that were already stored."""
        self._settle()
        with self._lock:  # otherwise a failing thread could drop the unsaved rows of another
            rows = self._unsaved | rows
            earlier = self._try(partial(self._insert, rows), writing=True) if rows else {}
            if earlier is None:
                if not self._unsaved:
                    atexit.register(self.flush)
                self._unsaved = dict(list(rows.items())[-MOST_UNSAVED:])
                return {}
            if self._unsaved:
                self._unsaved = {}
                atexit.unregister(self.flush)
        if self._leases:
            self._leases.answered(rows)
        return earlier

    def flush(self) -> None:
        """Try again to store the answers that could not be stored so far."""
        self._waits_until = 0.0
        self._save({})

    def _insert(self, rows: dict[Key, Row], link: sqlite3.Connection) -> dict[Key, str]:
        with link:
            link.execute("BEGIN IMMEDIATE")
            earlier = dict(self._sound(among(list(rows), "answers", ", ".join(CHECKED), link)))
            link.executemany(INSERT, [row for key, row in rows.items() if key not in earlier])
            if self._leases:
                self._leases.remove(list(rows), link)
        return earlier

    @property
    def unsaved(self) -> int:
        """Number of answers that could not be stored so far."""
        return len(self._unsaved)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _sound(self, rows: Iterable[Row]) -> Iterator[tuple[Key, str]]:
        """Skip rows that were altered since they were written; their questions are asked again."""
        for request, sample, value, stored, *_ in rows:
            key = (request, sample)
            if stored == checksum(key, value):
                yield key, value
            else:
                self._warn(f"An answer in the cache {self.path} is damaged and will be asked again.")

    def _try(self, work: Callable[[sqlite3.Connection], T], writing: bool = False) -> T | None:
        """Do the work; repeat it with a new file if the file is damaged, and return None on other errors."""
        self._settle()
        with self._lock:
            if time.monotonic() < self._waits_until and (writing or self._connection is None):
                return None
            for _ in range(2):
                try:
                    result = work(self._open())
                except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as error:
                    if not self._renewed(error):
                        break
                else:
                    if writing and self._waits_until:
                        self._waits_until = 0.0
                        self._be_patient(BUSY_SECONDS)
                    return result
        return None

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._gone():
            self.close()
        if self._connection is None:
            try:
                self._connection = self._connected()
            except OSError as error:
                if error.errno not in NO_WRITING or not self.path.exists():
                    raise
                self._connection = connect_to_read(self.path)
            self._inode = self.path.stat().st_ino
        return self._connection

    def _connected(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._guard():  # two processes must not turn to WAL mode at the same moment
            # set even if connecting fails, so that a file that replaced a damaged one is not renamed
            self._inode = self.path.stat().st_ino if self.path.exists() else 0
            return connect(self.path, BUSY_SECONDS)

    def _gone(self) -> bool:
        """Return True if the file was removed or replaced; rows written to the old one would be lost."""
        try:
            return self.path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    def _guard(self) -> FileLock:
        return FileLock(f"{self.path}.lock", timeout=BUSY_SECONDS)

    def _renewed(self, error: Exception) -> bool:
        """Return whether an error means damage; then another file is begun, else this one rests."""
        if not means_damage(error):
            self._pause(error)
            return False
        try:
            with self._guard():
                self.close()
                if self._inode in (0, self.path.stat().st_ino):  # else another process has done it
                    self._warn(begin_again(self.path))
        except OSError as trouble:
            self._pause(trouble)
        return True

    def _pause(self, error: Exception) -> None:
        """Do not use the file for a while, and wait for it less long after that."""
        self._waits_until = time.monotonic() + PAUSE_SECONDS
        self._be_patient(LATER_SECONDS)
        self._warn(
            f"The answer cache {self.path} cannot be used ({error}); answers stay in memory, and storing "
            f"them is tried again every {PAUSE_SECONDS:g} seconds."
        )

    def _be_patient(self, seconds: float) -> None:
        if self._connection is not None:
            self._connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")

    def _warn(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(message, HunchWarning, stacklevel=2)


def _note_origin(row: tuple[str, str, str, str], link: sqlite3.Connection) -> None:
    """Store a model, its revision, its report and the date, unless the report is stored already."""
    with link:
        link.execute(TOLD)
        link.execute("INSERT OR IGNORE INTO told (model, revision, told, first) VALUES (?,?,?,?)", row)


def _remove(keys: Sequence[Key], link: sqlite3.Connection) -> None:
    with link:
        link.executemany("DELETE FROM answers WHERE request = ? AND sample = ?", keys)


_inherited: list[Any] = []
"""Connections of a parent process; closing them here could remove files that the parent still uses."""
