"""Stores finished trials in memory and optionally in a file, so that no trial is run twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hunch.core import HunchError, UsageError
from hunch.lm.registry import per_user

MOST = 20_000
_MEMORY: dict[tuple[str, str], dict[str, Any]] = {}
"""Trials of this process by file and key; the oldest are dropped beyond :data:`MOST`."""


class Trials:
    """Trials of one problem.

    Args:
        path: SQLite file; ``"user"`` for a file next to the user's answers, empty for memory only.
        identity: Hash that identifies the problem.
    """

    def __init__(self, path: str, identity: str) -> None:
        self.path = str(per_user().with_name("trials.sqlite")) if path == "user" else path
        if Path(self.path or "-").is_dir():
            raise UsageError(f"{path} is a folder, not a file of trials.")
        self.identity = hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()

    def key(self, program: str, seed: int) -> str:
        """Return the key of a trial: problem, program and seed."""
        text = f"{self.identity}\n{seed}\n{program}"
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the fields of a finished trial, if it is known."""
        if (self.path, key) in _MEMORY or not self.path:
            return _MEMORY.get((self.path, key))
        with self._file() as file:
            row = file.execute("SELECT trial FROM trials WHERE key = ?", (key,)).fetchone()
        return None if row is None else self._remember(key, _read(row[0]))

    def put(self, key: str, trial: Any) -> None:
        """Store a finished trial.

        Raises:
            HunchError: if the file cannot be written.
        """
        line = json.dumps(asdict(trial))
        self._remember(key, _read(line))
        if self.path:
            with self._file() as file:
                file.execute("INSERT OR IGNORE INTO trials VALUES (?, ?)", (key, line))

    def _remember(self, key: str, fields: dict[str, Any]) -> dict[str, Any]:
        while len(_MEMORY) >= MOST:
            _MEMORY.pop(next(iter(_MEMORY)))
        return _MEMORY.setdefault((self.path, key), fields)

    @contextmanager
    def _file(self) -> Iterator[sqlite3.Connection]:
        """Open the file in a ``with`` block, and commit at its end."""
        path = Path(self.path).expanduser()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(path, timeout=60)) as file, file:
                file.execute("CREATE TABLE IF NOT EXISTS trials (key TEXT PRIMARY KEY, trial TEXT NOT NULL)")
                yield file
        except (OSError, sqlite3.Error) as error:
            raise HunchError(f"The file of trials {path} cannot be used: {error}.") from error


def _read(line: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(line)
    return {**fields, "scores": tuple(fields["scores"])}
