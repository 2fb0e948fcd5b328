"""Notes what a server says of itself, beside its answers."""

from __future__ import annotations

import sqlite3

TOLD = """
CREATE TABLE IF NOT EXISTS told (
    model TEXT NOT NULL,
    revision TEXT NOT NULL,
    told TEXT NOT NULL,         -- what a server says of itself, such as a fingerprint; no part of any key
    first TEXT NOT NULL,        -- UTC, when it was first seen
    PRIMARY KEY (model, revision, told)
)"""


def note(told: tuple[str, ...], link: sqlite3.Connection) -> None:
    """Note model, revision, what it says, and the date, unless it is known."""
    with link:
        link.execute(TOLD)
        link.execute("INSERT OR IGNORE INTO told (model, revision, told, first) VALUES (?,?,?,?)", told)
