"""Detects whether a file of answers is damaged, and begins another with the answers still readable."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hunch.core import UsageError
from hunch.lm.answers.table import COLUMNS, INSERT, checksum, connect, text

_SQLITE: Final = b"SQLite format 3\0"
"""How each file of sqlite begins."""
FAILURES: Final = 20_000
"""Number of failed queries after which the rest of the file is skipped."""
SMALLEST_ROW: Final = 100  # bytes; at least a checksum of 64 letters and a date


def require_answers(path: Path) -> None:
    """Check that a file is not another program's, which would be renamed as damaged.

    Raises:
        UsageError: if it is.
    """
    with open(path, "rb") as file:
        start = file.read(len(_SQLITE))
    if start and start != _SQLITE:
        raise UsageError(f"HUNCH_CACHE is {path}, which is not a file of answers: choose another file.")


def means_damage(error: Exception) -> bool:
    """Return whether an error means a damaged file, and not one that is in use or unreachable."""
    if isinstance(error, UnicodeDecodeError):  # from sqlite's message about a damaged schema
        return True
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def begin_again(path: Path) -> str:
    """Rename a damaged file, copy what can be read to a new one, and say so in a sentence."""
    aside = f"{path}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
    for suffix in ("", "-wal", "-shm"):
        if Path(f"{path}{suffix}").exists():
            os.replace(f"{path}{suffix}", f"{aside}{suffix}")
    rows = (row for row in _readable(Path(aside)) if row[3] == checksum((row[0], row[1]), row[2]))
    with closing(connect(path)) as link, link:
        saved = max(link.executemany(INSERT, rows).rowcount, 0)
    return (
        f"The answer cache was damaged; it is kept as {aside}, and a new one starts with the {saved:,} "
        "answers that could be read."
    )


def _readable(path: Path) -> Iterator[tuple[Any, ...]]:
    """Yield the readable rows of a damaged file, with None for a column that it lacks.

    A damaged page ends a query, so a range of rows that fails is split in halves, down to single rows.
    """
    with suppress(sqlite3.Error, UnicodeDecodeError), closing(_open(path)) as link:
        present = {row[1] for row in link.execute("PRAGMA table_info(answers)")}
        columns = ", ".join(name if name in present else "NULL" for name in COLUMNS)
        query = f"SELECT {columns} FROM answers NOT INDEXED WHERE rowid BETWEEN ? AND ?"
        failures = 0
        ranges = [(0, _last(link, path))]
        while ranges and failures < FAILURES:
            first, last = ranges.pop()
            try:
                yield from link.execute(query, (first, last)).fetchall()
            except (sqlite3.Error, UnicodeDecodeError):
                failures += 1
                if last > first:
                    middle = (first + last) // 2
                    ranges += [(middle + 1, last), (first, middle)]  # the first half is read next


def _open(path: Path) -> sqlite3.Connection:
    link = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    link.text_factory = text
    return link


def _last(link: sqlite3.Connection, path: Path) -> int:
    """Return the number of the last row, or an upper bound if it cannot be read."""
    try:
        return int(link.execute("SELECT MAX(rowid) FROM answers NOT INDEXED").fetchone()[0] or 0)
    except sqlite3.Error:
        return path.stat().st_size // SMALLEST_ROW
