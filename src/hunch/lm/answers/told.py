"""What servers say of themselves, such as a fingerprint, kept beside the answers that they gave."""

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
    """Store one row of the table, unless it is there."""
    with link:
        link.execute(TOLD)
        link.execute("INSERT OR IGNORE INTO told (model, revision, told, first) VALUES (?,?,?,?)", told)
