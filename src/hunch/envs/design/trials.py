"""Stores finished trials in memory and optionally in a file, so that no trial is run twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from hunch.core import HunchError, HunchWarning, UsageError
from hunch.lm.registry import per_user

_KINDS: Final = {
    "fitness": float | int | None,
    "feedback": str,
    "scores": list,
    "components": dict,
    "error": str,
}
"""The fields of a trial, and what they are in JSON."""
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
            if row is None:
                return None
            fields = _read(row[0])
            if fields is None:
                file.execute("DELETE FROM trials WHERE key = ?", (key,))
        if fields is None:
            message = f"A trial in the file {self.path} is damaged, or of a later version, and is run again."
            warnings.warn(message, HunchWarning, stacklevel=2)
            return None
        return self._remember(key, fields)

    def put(self, key: str, trial: Any) -> None:
        """Store a finished trial.

        Raises:
            HunchError: if the file cannot be written.
        """
        line = json.dumps(asdict(trial))
        fields = _read(line)
        assert fields is not None
        self._remember(key, fields)
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


def _read(line: Any) -> dict[str, Any] | None:
    """Return the fields of a trial; None if they are not those of a trial."""
    try:
        fields = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.keys() != _KINDS.keys():
        return None
    if not all(isinstance(fields[name], kind) for name, kind in _KINDS.items()):
        return None
    numbers = [*fields["scores"], *fields["components"].values()]
    if not all(isinstance(number, int | float) for number in numbers):
        return None
    return {**fields, "scores": tuple(fields["scores"])}
