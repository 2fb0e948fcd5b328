"""A run's result as a pandas DataFrame, and as an HTML table for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hunch.core import UsageError
from hunch.rl.rollout import Finished


def frame(episodes: Sequence[Finished], evaluations: Sequence[Finished]) -> Any:
    """Return all episodes as a pandas DataFrame.

    Raises:
        UsageError: if pandas is not installed.
    """
    try:
        import pandas  # type: ignore[import-untyped, unused-ignore]
    except ModuleNotFoundError as error:
        raise UsageError("A DataFrame needs pandas: pip install pandas.") from error
    rows = [
        (e.step, e.number, e.episode_return, e.length, e.success, evaluation, e.seed, e.actions)
        for evaluation, own in ((False, episodes), (True, evaluations))
        for e in own
    ]
    columns = ["step", "episode", "return", "length", "success", "evaluation", "seed", "actions"]
    return pandas.DataFrame(rows, columns=columns)


def table(rows: Mapping[str, str]) -> str:
    """Return values by name as an HTML table of two columns."""
    cells = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows.items())
    return f"<table>{''.join(cells)}</table>"


def of_summary(summary: Mapping[str, Any], requested: int, success: str, asked: str) -> str:
    """Return the summary of a run as an HTML table; ``asked`` is the name for its model calls."""
    stopped = f": {summary['stopped']}" if summary["stopped"] else ""
    calls, hits = (summary["usage"].get(name, 0) for name in ("calls", "cache_hits"))
    return table(
        {
            "success, last quarter of the steps": success,
            "steps": f"{summary['steps']:,} of {requested:,}",
            "complete": "yes" if summary["complete"] else f"no{stopped}",
            "episodes": f"{summary['episodes']:,}",
            "evaluation episodes": f"{summary['evaluations']:,}",
            asked: f"{calls:,.0f}, and {hits:,.0f} cache hits",
            "wall time": f"{summary['seconds']:.1f} s",
            "evidence level": summary["evidence"] or "none: no model in a role",
        }
    )
