"""Makes the report page: computes all data that ``page.js`` shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from hunch.printable import printable_values
from hunch.report.curves import COLOURS, LIFE, Curve, Points, X, Y, learning_curve, unit, within
from hunch.report.episodes import RunEpisodes, episodes_of
from hunch.report.gather import Comparison, LeftOut, Run
from hunch.report.kept import chance, kept
from hunch.report.pack import digits, pack
from hunch.report.table import Row, final_return, rows, verdict
from hunch.rl.statistics import Estimate, contrast
from hunch.runs.compare import Arm
from hunch.runs.differences import leaves
from hunch.runs.models import Loaded

SCRIPTS = ("page.js", "charts.js", "viewer.js", "kept.js")


def page(
    comparisons: Sequence[Comparison],
    left_out: Sequence[LeftOut],
    *,
    episodes: int = 6,
    plain: bool = False,
    watch: Callable[[Run], None] = lambda run: None,
    missing: Callable[[Run, str], None] = lambda run, reason: None,
) -> str:
    """Make the page.

    Args:
        comparisons: The comparisons to show.
        left_out: Folders to list as left out.
        episodes: Episodes per run in which the agent explains every action.
        plain: Store recorded episodes uncompressed; see :func:`hunch.report.pack.pack`.
        watch: Called with each run before its episodes are replayed and its agent explains them.
        missing: Called with each run whose episodes cannot be replayed, and the reason.

    Returns:
        The page as self-contained HTML. The same folders give the same page.
    """
    runs = [run for comparison in comparisons for members in comparison.arms.values() for run in members]
    all_episodes, loaded = list[RunEpisodes](), Loaded()
    for run in runs:
        watch(run)
        run_episodes = episodes_of(run, episodes, loaded)
        all_episodes.append(run_episodes)
        if run_episodes.reason:
            missing(run, run_episodes.reason)
    words, blocks = pack(all_episodes, plain=plain)
    data = {
        "title": title(comparisons),
        "x": X | (LIFE if any(run.config.lifetime > 1 for run in runs) else {}),
        "y": Y,
        "colours": COLOURS,
        "comparisons": [_comparison(comparison, runs) for comparison in comparisons],
        "runs": [{"name": run.name, "seed": run.config.seed} for run in runs],
        "leftOut": [[each.name, each.reason] for each in left_out],
        "words": words,
        "blocks": blocks,
        "kept": kept(runs, plain=plain),
        "chance": [chance(run, members) for members, run in _placed(comparisons)],
    }
    return fill(data)


def _placed(comparisons: Sequence[Comparison]) -> list[tuple[list[Run], Run]]:
    """Return each run with all runs of its comparison, in the order of :func:`page`."""
    placed = []
    for comparison in comparisons:
        members = [run for runs in comparison.arms.values() for run in runs]
        placed += [(members, run) for run in members]
    return placed


def title(comparisons: Sequence[Comparison]) -> str:
    """Return the title of the report: its environments."""
    return "; ".join(dict.fromkeys(comparison.place.removeprefix("hunch/") for comparison in comparisons))


def fill(data: dict[str, Any]) -> str:
    """Insert data, style and scripts into the page; the data are escaped, so they cannot become markup."""
    folder = files("hunch.report")
    data = printable_values(data)
    embedded = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        embedded = embedded.replace(character, f"\\u{ord(character):04x}")
    parts = {
        "title": escape(f"{data['title']} - Hunch report"),
        "style": (folder / "page.css").read_text(encoding="utf-8"),
        "script": "".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS),
        "data": embedded,
    }
    before, *rest = (folder / "page.html").read_text(encoding="utf-8").split("{{")
    pieces = [piece.partition("}}") for piece in rest]
    return before + "".join(parts[name] + after for name, _, after in pieces)


def _comparison(comparison: Comparison, runs: Sequence[Run]) -> dict[str, Any]:
    table = rows(comparison.outcomes)
    members = list(comparison.arms.values())
    plain = {*X, *Y}
    more = dict.fromkeys(n for group in members for run in group for n in run.points if n not in plain)
    # Of each arm, the return at the end, by seed.
    returns = [{run.config.seed: final_return(run.result) for run in arm_runs} for arm_runs in members]
    searched = table[0].best is not None
    best = {"best": _beats(table, [row.best_by_seed for row in table])} if searched else {}
    return {
        "more": list(more),
        "score": "best" if searched else "success",
        "title": comparison.title,
        "place": comparison.place,
        "steps": comparison.steps,
        "unit": unit(comparison.arms),
        "arms": [_arm(*each, runs) for each in zip(comparison.arms.items(), table, strict=True)],
        "beats": {
            "success": _beats(table, [row.by_seed for row in table], best=1.0),
            "return": _beats(table, returns),
            **best,
        },
        "verdict": verdict(table),
        "settings": _settings(list(comparison.arms)),
        "versions": _versions(comparison.arms),
    }


def _arm(arm: tuple[Arm, list[Run]], row: Row, runs: Sequence[Run]) -> dict[str, Any]:
    label, members = arm[0].label, arm[1]
    points = [run.points for run in members]
    lives = [within(run.result, run.config.lifetime) for run in members if run.config.lifetime > 1]
    return {
        "label": label,
        "model": row.model,
        "revision": ", ".join(
            filter(None, (about["revision"] for about in members[0].record["models"].values()))
        ),
        "evidence": row.evidence,
        "seeds": row.seeds,
        "runs": [runs.index(run) for run in members],
        "curves": {
            **{f"{x} {y}": _curve(learning_curve(points, x, y)) for x in X for y in (*Y, *_more(points))},
            **{f"{x} {y}": _curve(learning_curve(lives, x, y)) for x in LIFE for y in Y if lives},
        },
        "final": {
            "success": _success(row, members),
            "return": _estimate(row.returns),
            **({"best": _estimate(row.best)} if row.best else {}),
        },
        "stepsToHalf": row.steps_to_half,
        "costs": {
            **{f"requests, {role}": asked for role, asked in row.requests.items()},
            "model calls": row.calls,
            "cache hits": row.hits,
            "tokens": row.tokens,
            "model time, s": round(row.model_seconds, 1),
            "wall time, s": round(row.seconds, 1),
            **row.others,
        },
        "settings": arm[0].config.settings(),
        "said": list(members[0].first_answers),
    }


def _more(points: Sequence[Points]) -> list[str]:
    """Return the names of the method's own metrics in these runs."""
    return [name for name in dict.fromkeys(n for each in points for n in each) if name not in {*X, *Y}]


def _success(row: Row, members: Sequence[Run]) -> list[float | None]:
    """Return the success of an arm over seeds; of a single run with the interval over its episodes."""
    return _estimate(row.success if len(members) > 1 else members[0].result.success)


def _curve(curve: Curve | None) -> dict[str, list[float | None]] | None:
    if curve is None:
        return None
    return {name: [digits(float(v)) for v in getattr(curve, name)] for name in ("x", "value", "low", "high")}


def _estimate(estimate: Estimate) -> list[float | None]:
    return [digits(estimate.value), digits(estimate.low), digits(estimate.high)]


def _beats(
    table: Sequence[Row], scores: Sequence[Mapping[int, float]], best: float | None = None
) -> list[list[list[str] | None]]:
    """Return the verdict on the row's arm over the column's, and its lead; None on the diagonal."""
    sides = list(zip(table, scores, strict=True))

    def cell(row: Row, scores: Mapping[int, float], other: Row, its: Mapping[int, float]) -> list[str] | None:
        evidence = contrast(scores, its, best=best)
        return None if row is other else [evidence.said, evidence.size]

    return [[cell(*one, *other) for other in sides] for one in sides]


def _settings(arms: Sequence[Arm]) -> dict[str, list[list[Any]]]:
    """Return rows of a setting's name and each arm's value, for settings that differ or are missing."""
    flat = [leaves(arm.config.settings()) for arm in arms]
    table: dict[str, list[list[Any]]] = {"differing": [], "lacking": []}
    for name in dict.fromkeys(name for each in flat for name in each if name != "seed"):
        present = [each[name] for each in flat if name in each]
        row = [name.removeprefix("options."), *(each.get(name) for each in flat)]
        if any(value != present[0] for value in present):
            table["differing"].append(row)
        elif len(present) < len(flat):
            table["lacking"].append(row)
    return table


def _versions(arms: dict[Arm, list[Run]]) -> list[list[str]]:
    """Return the installed packages with their version, or versions if the runs differ."""
    records = [run.record["versions"] for members in arms.values() for run in members]
    names = dict.fromkeys(name for record in records for name in record)
    versions_of = {
        name: sorted({record.get(name) or "not installed" for record in records}) for name in names
    }
    return [[name, ", ".join(versions)] for name, versions in versions_of.items()]
