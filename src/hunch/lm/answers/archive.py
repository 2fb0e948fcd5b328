"""Inspects, exports and clears a file of cached answers. It never creates or repairs such a file.

An export is a file of JSON lines, gzipped if its name ends in ``.gz``. Each line is one answer, with
``model``, ``revision``, ``evidence``, ``verb``, ``request`` (prompt and sampling, prompt and options or
labels, or text), ``sample``, ``value`` (as :func:`hunch.lm.answers.stored.encode` writes it), ``version`` of
this library and ``created``. A line whose verb is ``count`` holds the number of tokens in a text, with the
model's ``context``: prompts that are cut to fit are made again from it without the tokenizer.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, cast

from hunch.core import HunchError, UsageError
from hunch.lm.answers.table import checksum, connect_to_read, opened
from hunch.suggest import suggest

WAIT_SECONDS = 5.0
PROVENANCE = ("model", "revision", "verb", "version", "created")
COLUMNS = {"request", "sample", "value", "checksum", *PROVENANCE}


@dataclass(frozen=True, slots=True)
class Holding:
    """The stored answers of one model to one kind of request, as counts and dates.

    Attributes:
        size: Bytes of the answers and their requests.
        first: Date of the oldest answer, ISO 8601, UTC.
        last: Date of the newest answer.
    """

    model: str
    revision: str
    verb: str
    answers: int
    size: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Export:
    """Counts of an export: written answers, answers left out for lack of a request, damaged ones."""

    written: int
    without_request: int
    damaged: int


class Archive:
    """A file of answers, opened to inspect, export or clear it.

    Args:
        path: The file.

    Raises:
        UsageError: if the file does not exist, or is another program's database.
        HunchError: if it is damaged, locked, or cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser().absolute()
        if not self.path.is_file():
            raise UsageError(f"There is no file of answers at {self.path}.")
        with self._link() as link:
            columns = {row[1] for row in link.execute("PRAGMA table_info(answers)")}
        if not columns >= COLUMNS:
            raise UsageError(f"{self.path} is a database of another program, not a file of answers.")
        self._question = "question" if "question" in columns else "NULL"

    def holdings(self) -> list[Holding]:
        """Return the contents, sorted by model, revision and verb."""
        size = f"SUM(LENGTH(CAST(value AS BLOB)) + COALESCE(LENGTH(CAST({self._question} AS BLOB)), 0))"
        # As texts, whatever a damaged file holds.
        texts = "CAST(model AS TEXT), CAST(revision AS TEXT), CAST(verb AS TEXT)"
        dates = "CAST(MIN(created) AS TEXT), CAST(MAX(created) AS TEXT)"
        query = (
            f"SELECT {texts}, COUNT(*), {size}, {dates} FROM answers "
            "GROUP BY model, revision, verb ORDER BY model, revision, verb"
        )
        with self._link() as link:
            return [Holding(*row) for row in link.execute(query)]

    def count(self, model: str | None = None, older_than: float | None = None) -> int:
        """Return how many answers :meth:`clear` would remove.

        Raises:
            UsageError: if there is no answer of that model; the message suggests similar names.
        """
        where, values = self._where(model, older_than)
        with self._link() as link:
            return int(link.execute(f"SELECT COUNT(*) FROM answers{where}", values).fetchone()[0])

    def clear(self, model: str | None = None, older_than: float | None = None) -> int:
        """Delete answers, and return how many were deleted.

        Args:
            model: Only answers of this model.
            older_than: Only answers older than this many days.

        Raises:
            UsageError: if there is no answer of that model, or the number of days is negative.
            HunchError: if the file is read-only or another process is writing to it; nothing is deleted then.
        """
        where, values = self._where(model, older_than)
        with self._link(writing=True) as link:
            with link:
                removed = link.execute(f"DELETE FROM answers{where}", values).rowcount
            with suppress(sqlite3.OperationalError):  # the file can shrink later
                link.execute("VACUUM")
        return int(removed)

    def export(self, target: str | Path, model: str | None = None) -> Export:
        """Write answers to a file that ``replay:`` can read.

        Args:
            target: The file to write, gzipped if its name ends in ``.gz``.
            model: Only answers of this model.

        Raises:
            UsageError: if the file exists, or there is no answer of that model.
            HunchError: if it cannot be written.
        """
        target = Path(target).expanduser()
        if target.exists():
            raise UsageError(f"{target} already exists; choose another file for the export.")
        part = target.with_name(target.name + ".tmp")
        counts = dict.fromkeys(("written", "without_request", "damaged"), 0)
        try:
            with _opened(part, "wt", packed=target.suffix == ".gz") as file:
                for line, fate in self._lines(model):
                    counts[fate] += 1
                    file.write(line)
            os.replace(part, target)
        except OSError as error:
            raise HunchError(f"Cannot write {target}: {error.strerror or error}.") from error
        finally:
            part.unlink(missing_ok=True)
        return Export(**counts)

    def _lines(self, model: str | None) -> Iterator[tuple[str, str]]:
        """Yield each answer as a line, empty if it is left out, with the name of its count in Export."""
        where, values = self._where(model, None)
        columns = f"request, sample, checksum, {self._question}, {', '.join(PROVENANCE)}, value"
        query = f"SELECT {columns} FROM answers{where} ORDER BY model, revision, verb, rowid"
        with self._link() as link:
            yield from map(_line, link.execute(query, values))

    def _where(self, model: str | None, older_than: float | None) -> tuple[str, list[str]]:
        parts: dict[str, str] = {}
        if model is not None:
            known = {holding.model for holding in self.holdings()}
            if model not in known:
                raise UsageError(f"There are no answers of {model!r} in {self.path}; {suggest(model, known)}")
            parts["model = ?"] = model
        if older_than is not None:
            if not older_than >= 0:
                raise UsageError(f"The number of days must be at least 0, not {older_than}.")
            try:
                before = (datetime.now(UTC) - timedelta(days=older_than)).isoformat(timespec="seconds")
            except OverflowError:  # before the first date that there is; no answer is as old
                before = ""
            parts["created < ?"] = before
        return (" WHERE " + " AND ".join(parts) if parts else ""), list(parts.values())

    @contextmanager
    def _link(self, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
        """Open the file, and turn sqlite's errors into one sentence."""
        try:
            connected = (
                opened(self.path, "mode=rw", WAIT_SECONDS)
                if writing
                else connect_to_read(self.path, WAIT_SECONDS)
            )
            with closing(connected) as link:
                yield link
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise HunchError(f"{self.path} {_reason(error)}; it was left unchanged.") from error


def _line(row: tuple[Any, ...]) -> tuple[str, str]:
    """Return an answer as a line, empty if it is left out, with the name of its count in Export."""
    key, sample, stored, question, *origin, value = row
    record = dict(zip(PROVENANCE, origin, strict=True)) | {"sample": sample}
    if question is None:
        return "", "without_request"
    try:
        record |= json.loads(question) | {"value": json.loads(value)}
        asked = json.dumps([record.get(name) for name in ("model", "revision", "verb", "request")])
    except (ValueError, TypeError, RecursionError):
        return "", "damaged"
    if stored != checksum((key, sample), value) or key != hashlib.sha256(asked.encode()).hexdigest():
        return "", "damaged"
    return json.dumps(record) + "\n", "written"


def _reason(error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "is in use by another process"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return f"cannot be opened or written by you ({error})"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeDecodeError):
        return "is damaged or not a file of answers"
    return f"cannot be used ({error})"


@contextmanager
def _opened(path: Path, mode: str, *, packed: bool) -> Iterator[IO[str]]:
    opener: Any = gzip.open if packed else open
    with opener(path, mode, encoding="utf-8") as file:
        yield cast("IO[str]", file)
