"""What the runs of a line cost, as the tables of studies state it: calls, cache hits and seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hunch.runs.result import Result

COST: Final = "model calls | cache hits | seconds"
"""The columns of :func:`cost`."""


def spent(result: Result, role: str = "") -> dict[str, Any]:
    """Return a run's calls and cache hits, of one role or of all models, and its wall time in seconds."""
    usage = result.models.get(role, {}) if role else result.usage
    return {
        "calls": int(usage.get("calls", 0)),
        "hits": int(usage.get("cache_hits", 0)),
        "seconds": result.seconds,
    }


def cost(runs: Iterable[Mapping[str, Any]]) -> str:
    """Return the cells of :data:`COST`, each the sum over the runs."""
    calls, hits, seconds = map(
        sum, zip(*([run["calls"], run["hits"], run["seconds"]] for run in runs), strict=True)
    )
    return f"{calls:,} | {hits:,} | {seconds:,.0f}"
