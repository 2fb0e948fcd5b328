"""Answers on disk: one sqlite file, shared by processes, whose failure never stops a run.

A damaged file is renamed, and a new one starts with the answers that can still be read. If an answer cannot
be stored, because the disk is full or the file is locked, it stays in memory and is stored later. Either
problem is reported once, as a :class:`~hunch.core.HunchWarning`.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from filelock import FileLock

from hunch.core import HunchWarning, UsageError
from hunch.lm.answers.keys import Key, among, checksum
from hunch.plugins import version_of

if TYPE_CHECKING:
    from hunch.lm.answers.leases import Leases
    from hunch.lm.base import Verb

T = TypeVar("T")
Row = tuple[Any, ...]

BUSY_SECONDS = 60.0
PAUSE_SECONDS = 30.0
"""Seconds without another attempt, after the file could not be used."""
LATER_SECONDS = 1.0
"""Maximum seconds to wait for a busy file, after an earlier wait failed."""
MOST_UNSAVED = 20_000
CHECKED: Final = ("request", "sample", "value", "checksum")
COLUMNS: Final = (*CHECKED, "verb", "model", "revision", "version", "created", "question")
INSERT = f"INSERT OR REPLACE INTO answers ({', '.join(COLUMNS)}) VALUES ({','.join('?' * len(COLUMNS))})"
SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    request TEXT NOT NULL,      -- sha256 of [model, revision, verb, request] as JSON
    sample INTEGER NOT NULL,
    value TEXT NOT NULL,        -- JSON
    checksum INTEGER NOT NULL,  -- CRC-32 of "request:sample:value"
    verb TEXT NOT NULL,
    model TEXT NOT NULL,
    revision TEXT NOT NULL,
    version TEXT NOT NULL,      -- of this library
    created TEXT NOT NULL,      -- UTC
    question TEXT,              -- JSON: the request in full, and the model's evidence level
    PRIMARY KEY (request, sample)
)"""
TOLD = """
CREATE TABLE IF NOT EXISTS told (
    model TEXT NOT NULL,
    revision TEXT NOT NULL,
    told TEXT NOT NULL,         -- what a server says of itself, such as a fingerprint; no part of any key
    first TEXT NOT NULL,        -- UTC, when it was first seen
    PRIMARY KEY (model, revision, told)
)"""


class Source(NamedTuple):
    """The origin of answers, stored with each of them."""

    verb: Verb
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
        self._told: set[tuple[str, str, str]] = set()
        self._leases: Leases | None = None

    @property
    def leases(self) -> Leases:
        """The leases on questions that are being asked."""
        from hunch.lm.answers.leases import Leases  # late: models that only embed take none

        self._settle()
        with self._lock:
            self._leases = self._leases or Leases(partial(self._try, writing=True))
        return self._leases

    def _settle(self) -> None:
        """Start again in a forked process, where locks may be held by threads that no longer exist."""
        if self._process != os.getpid():
            _inherited.append(self._connection)
            self._begin()

    def __getstate__(self) -> Path:
        return self.path

    def __setstate__(self, path: Path) -> None:
        self.path = path
        self._begin()

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
        told = (source.model, source.revision, source.told, now)
        if source.told and told[:3] not in self._told:
            self._told.add(told[:3])
            self._try(partial(_note, told), writing=True)
        return {key: value for key, value in earlier.items() if key in rows}

    def _save(self, rows: dict[Key, Row]) -> dict[Key, str]:
        """Store rows, including those that failed before; return the answers that were already stored."""
        self._settle()
        with self._lock:  # otherwise a failing thread could drop the unsaved rows of another
            rows = self._unsaved | rows
            earlier = self._try(partial(self._insert, list(rows.values())), writing=True) if rows else {}
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

    def _insert(self, rows: list[Row], link: sqlite3.Connection) -> dict[Key, str]:
        with link:
            link.execute("BEGIN IMMEDIATE")
            keys = [(row[0], row[1]) for row in rows]
            earlier = dict(self._sound(among(keys, "answers", ", ".join(CHECKED), link)))
            link.executemany(INSERT, [row for row in rows if (row[0], row[1]) not in earlier])
            if self._leases:
                self._leases.remove(keys, link)
        return earlier

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
                    return self._done(work(self._open()), writing)
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                    from hunch.lm.answers.salvage import means_damage

                    if not means_damage(error):
                        self._pause(error)
                        break
                    self._set_aside()
                except OSError as error:
                    self._pause(error)
                    break
        return None

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._gone():
            self.close()
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._guard():  # two processes must not turn to WAL mode at the same moment
                # set even if connecting fails, so that a file that replaced a damaged one is not renamed
                self._inode = self.path.stat().st_ino if self.path.exists() else 0
                self._connection = _connect(self.path)
                self._inode = self.path.stat().st_ino
        return self._connection

    def _gone(self) -> bool:
        """Return True if the file was removed or replaced; rows written to the old one would be lost."""
        try:
            return self.path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    def _guard(self) -> FileLock:
        return FileLock(f"{self.path}.lock", timeout=BUSY_SECONDS)

    def _set_aside(self) -> None:
        """Rename the damaged file, unless another process has done so, and copy what can be read."""
        from hunch.lm.answers.salvage import take_over

        try:
            with self._guard():
                self.close()
                if self._inode in (0, self.path.stat().st_ino):
                    aside = f"{self.path}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
                    for suffix in ("", "-wal", "-shm"):
                        if Path(f"{self.path}{suffix}").exists():
                            os.replace(f"{self.path}{suffix}", f"{aside}{suffix}")
                    saved = take_over(Path(aside), COLUMNS, _connect(self.path), INSERT)
                    self._warn(
                        f"The answer cache was damaged; it is kept as {aside}, and a new one starts with the "
                        f"{saved:,} answers that could be read."
                    )
        except OSError as error:
            self._pause(error)

    def _pause(self, error: Exception) -> None:
        """Do not use the file for a while, and wait for it less long after that."""
        self._waits_until = time.monotonic() + PAUSE_SECONDS
        self._be_patient(LATER_SECONDS)
        self._warn(
            f"The answer cache {self.path} cannot be used ({error}); answers stay in memory, and storing "
            f"them is tried again every {PAUSE_SECONDS:g} seconds."
        )

    def _done(self, result: T, writing: bool) -> T:
        """Return the result; after a successful write, restore the full waiting time."""
        if writing and self._waits_until:
            self._waits_until = 0.0
            self._be_patient(BUSY_SECONDS)
        return result

    def _be_patient(self, seconds: float) -> None:
        if self._connection is not None:
            self._connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")

    def _warn(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(message, HunchWarning, stacklevel=2)


_inherited: list[Any] = []
"""Connections of a parent process; closing them here could remove files that the parent still uses."""


def _connect(path: Path) -> sqlite3.Connection:
    link = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
    link.text_factory = _text
    try:
        tables = {name for (name,) in link.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "answers" not in tables:
            raise UsageError(
                f"{path} is a database of another program; choose another file for the answer cache."
            )
        if not tables:
            link.execute("PRAGMA journal_mode = WAL")
            link.execute(SCHEMA)
        _widen(link)
        link.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        link.close()
        raise
    return link


def _widen(link: sqlite3.Connection) -> None:
    """Add a column that files of earlier versions lack; a read-only file is left unchanged."""
    with suppress(sqlite3.OperationalError):
        if "question" not in {column[1] for column in link.execute("PRAGMA table_info(answers)")}:
            link.execute("ALTER TABLE answers ADD COLUMN question TEXT")


def _text(stored: bytes) -> str:
    """Decode text that may be damaged; the checksum detects that, so no exception is needed."""
    return stored.decode(errors="replace")


def _note(told: tuple[str, ...], link: sqlite3.Connection) -> None:
    with link:
        link.execute(TOLD)
        link.execute("INSERT OR IGNORE INTO told (model, revision, told, first) VALUES (?,?,?,?)", told)
