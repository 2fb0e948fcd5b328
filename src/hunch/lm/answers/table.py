"""The table of answers in a file: its columns and keys, how it is opened, and how its rows are found."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from hunch.core import UsageError
from hunch.lm.base import Verb

BUSY_SECONDS: Final = 60.0
"""Seconds to wait for a file that another process writes."""
Kind: TypeAlias = Literal[Verb, "count"]
"""What a row holds: an answer to a kind of request, or the number of tokens in a text."""
Key: TypeAlias = tuple[str, int]
"""The SHA-256 of model name, revision, verb and full request, and the sample index."""
KEYS_A_QUERY: Final = 250  # of two parameters each; sqlite allows 999 in its older builds
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


def checksum(key: Key, value: str) -> int:
    """Return the checksum stored with a value, which shows whether it was altered."""
    return zlib.crc32(f"{key[0]}:{key[1]}:{value}".encode())


def among(keys: Sequence[Key], table: str, columns: str, link: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return the rows of a table that have one of the keys, found by its index."""
    rows: list[tuple[Any, ...]] = []
    for start in range(0, len(keys), KEYS_A_QUERY):
        part = keys[start : start + KEYS_A_QUERY]
        marks = ",".join(["(?,?)"] * len(part))
        query = (
            f"WITH asked (r, s) AS (VALUES {marks}) SELECT {columns} FROM asked "
            f"CROSS JOIN {table} ON request = r AND sample = s"
        )
        rows += link.execute(query, [value for key in part for value in key]).fetchall()
    return rows


def connect(path: Path, seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open or create a file of answers; wait up to ``seconds`` for another process that writes it."""
    link = sqlite3.connect(path, timeout=seconds, check_same_thread=False)
    link.text_factory = text
    try:
        tables = {name for (name,) in link.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "answers" not in tables:
            raise UsageError(
                f"{path} is a database of another program; choose another file for the answer cache."
            )
        if not tables:
            link.execute("PRAGMA journal_mode = WAL")
            link.execute(SCHEMA)
        with suppress(sqlite3.OperationalError):  # a read-only file of an earlier version stays as it is
            if "question" not in {column[1] for column in link.execute("PRAGMA table_info(answers)")}:
                link.execute("ALTER TABLE answers ADD COLUMN question TEXT")
        link.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        link.close()
        raise
    return link


def connect_to_read(path: Path, seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open a file of answers to read it, also in a folder that cannot be written.

    Answers that others write there later may not be seen until it is opened again.
    """
    link = opened(path, "mode=ro", seconds)
    try:
        link.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.Error as error:
        link.close()
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) or not path.is_file():
            raise
        # To read beside a writer, sqlite makes files of its own, which it cannot do here.
        link = opened(path, "mode=ro&immutable=1", seconds)
    return link


def opened(path: Path, mode: str, seconds: float) -> sqlite3.Connection:
    """Open an existing file; ``mode`` is that of sqlite's addresses, such as ``mode=rw``."""
    link = sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, timeout=seconds, check_same_thread=False)
    link.text_factory = text
    return link


def text(stored: bytes) -> str:
    """Decode text that may be damaged; the checksum detects that, so no exception is needed."""
    return stored.decode(errors="replace")
