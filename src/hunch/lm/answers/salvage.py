"""Detects whether a file of answers is damaged, and reads the answers that are still readable."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from hunch.lm.answers.keys import checksum

FAILURES: Final = 20_000
"""Number of failed queries after which the rest of the file is skipped."""
SMALLEST_ROW: Final = 100  # bytes; at least a checksum of 64 letters and a date


def means_damage(error: sqlite3.DatabaseError | UnicodeDecodeError) -> bool:
    """Return whether an error means a damaged file, and not one that is in use or unreachable."""
    if isinstance(error, UnicodeDecodeError):  # from sqlite's message about a damaged schema
        return True
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def take_over(damaged: Path, columns: tuple[str, ...], link: sqlite3.Connection, insert: str) -> int:
    """Copy the readable answers to a new file, close it, and return their number.

    Args:
        damaged: The damaged file.
        columns: The columns of an answer.
        link: The new file.
        insert: The statement that inserts an answer.
    """
    rows = (row for row in salvage(damaged, columns) if row[3] == checksum((row[0], row[1]), row[2]))
    with link:
        saved = link.executemany(insert, rows).rowcount
    link.close()
    return max(saved, 0)


def salvage(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the readable rows of a damaged file, without changing the file.

    A damaged page ends a query, so a range of rows that fails is split in halves, down to single rows.

    Args:
        path: The file.
        columns: Columns to return of each row; None for a column that the file does not have.
    """
    with suppress(sqlite3.Error, UnicodeDecodeError), closing(_open(path)) as link:
        there = {row[1] for row in link.execute("PRAGMA table_info(answers)")}
        wanted = ", ".join(name if name in there else "NULL" for name in columns)
        query = f"SELECT {wanted} FROM answers NOT INDEXED WHERE rowid BETWEEN ? AND ?"
        failures, ranges = 0, [(0, _last(link, path))]
        while ranges and failures < FAILURES:
            first, last = ranges.pop()
            try:
                yield from link.execute(query, (first, last)).fetchall()
            except (sqlite3.Error, UnicodeDecodeError):
                failures += 1
                middle = (first + last) // 2
                ranges += [(middle + 1, last), (first, middle)] if last > first else []


def _open(path: Path) -> sqlite3.Connection:
    link = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    link.text_factory = lambda stored: stored.decode(errors="replace")
    return link


def _last(link: sqlite3.Connection, path: Path) -> int:
    """Return the number of the last row, or an upper bound if it cannot be read."""
    try:
        return int(link.execute("SELECT MAX(rowid) FROM answers NOT INDEXED").fetchone()[0] or 0)
    except sqlite3.Error:
        return path.stat().st_size // SMALLEST_ROW
