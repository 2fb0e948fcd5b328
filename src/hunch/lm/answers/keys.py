"""Keys of stored answers, and a query that finds the rows of many keys at once."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

Key: TypeAlias = tuple[str, int]
"""The SHA-256 of model name, revision, verb and full request, and the sample index."""
KEYS_A_QUERY: Final = 250  # of two parameters each; sqlite allows 999 in its older builds


def checksum(key: Key, value: str) -> int:
    """Return the checksum stored with a value, which shows whether it was altered."""
    return zlib.crc32(f"{key[0]}:{key[1]}:{value}".encode())


def parts(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Yield the keys in parts that fit into one query."""
    for start in range(0, len(keys), KEYS_A_QUERY):
        yield keys[start : start + KEYS_A_QUERY]


def among(keys: Sequence[Key], table: str, columns: str, link: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return the rows of a table that have one of the keys, found by its index."""
    found: list[tuple[Any, ...]] = []
    for part in parts(keys):
        marks = ",".join(["(?,?)"] * len(part))
        query = (
            f"WITH asked (r, s) AS (VALUES {marks}) SELECT {columns} FROM asked "
            f"CROSS JOIN {table} ON request = r AND sample = s"
        )
        found += link.execute(query, [value for key in part for value in key]).fetchall()
    return found
