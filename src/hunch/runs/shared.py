"""One budget for all runs of a comparison; shared memory holds what each process has spent."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableSequence, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hunch.core import HunchError
from hunch.lm.budget import Budget
from hunch.runs.files import read_json
from hunch.runs.folder import JOURNAL
from hunch.seal import read_sealed_json

LONGEST_LINE = 65_536
"""Maximum length in bytes of the last line of a file, when that line is searched for."""


SPENT = ("calls", "prompt_tokens", "completion_tokens", "cost", "seconds")


@dataclass(frozen=True, kw_only=True)
class SharedBudget(Budget):
    """A budget that several processes share.

    Attributes:
        spent: What each process has spent, in shared memory: one row of ``SPENT`` per process.
        row: Index of this process's row.
    """

    spent: MutableSequence[float]
    row: int

    def check(self, usage: Mapping[str, float], requests: int) -> None:
        """Record the usage and the planned requests of this process, and check the sum over all processes.

        See :class:`hunch.lm.budget.Budget`.
        """
        self.settle({**usage, "calls": usage["calls"] + requests})
        rows = list(self.spent[:])
        total = {name: sum(rows[i :: len(SPENT)]) for i, name in enumerate(SPENT)}
        super().check({**total, "calls": total["calls"] - requests}, requests)

    def settle(self, usage: Mapping[str, float]) -> None:
        """Record the usage of this process."""
        start = self.row * len(SPENT)
        self.spent[start : start + len(SPENT)] = [float(usage[name]) for name in SPENT]

    def check_prices(self, models: Sequence[object]) -> None:
        """Do nothing: the parent process has checked the prices."""


def shares(budget: Budget, folders: Sequence[Path], context: Any) -> list[SharedBudget]:
    """Return a budget for each run, whose row starts with the usage of earlier sessions."""
    earlier = [_spent(folder) for folder in folders]
    spent = context.Array("d", [usage.get(name, 0.0) for usage in earlier for name in SPENT])
    return [SharedBudget(**asdict(budget), spent=spent, row=row) for row in range(len(folders))]


def _spent(folder: Path) -> dict[str, float]:
    """Return the usage of a run so far; one that was killed has no summary, but lines of metrics."""
    summary = journal = None
    with suppress(HunchError):  # damage is reported when the run begins
        summary = read_json(folder / "summary.json")
        journal = read_json(folder / JOURNAL)
    figures = summary or last_line(folder / "metrics.jsonl") or {}
    usage: dict[str, float] = figures.get("usage", {})
    noted = list((journal or {}).values())
    return {name: max(usage.get(name, 0.0), sum(row.get(name, 0.0) for row in noted)) for name in SPENT}


def last_line(path: Path) -> dict[str, Any] | None:
    """Return the last complete line of a JSON-lines file; None if there is none or it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_LINE))
            complete = file.read().split(b"\n")[:-1]
        value: dict[str, Any] | None = read_sealed_json(complete[-1] + b"\n") if complete else None
    except (FileNotFoundError, ValueError):
        return None
    return value
