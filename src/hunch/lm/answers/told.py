"""Stores what servers report about themselves, such as a fingerprint, next to their answers."""

from __future__ import annotations

import sqlite3

TOLD = """
CREATE TABLE IF NOT EXISTS told (
    model TEXT NOT NULL,
    revision TEXT NOT NULL,
    told TEXT NOT NULL,         -- what the server said; no part of any key
    first TEXT NOT NULL,        -- UTC, when it was first seen
    PRIMARY KEY (model, revision, told)
)"""


def note(told: tuple[str, ...], link: sqlite3.Connection) -> None:
    """Store a model, its revision, its report and the date, unless the report is stored already."""
    with link:
        link.execute(TOLD)
        link.execute("INSERT OR IGNORE INTO told (model, revision, told, first) VALUES (?,?,?,?)", told)
