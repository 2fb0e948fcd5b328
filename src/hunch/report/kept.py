"""Records of agents other than episodes: programs with ancestors and differences, and transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.printable import printable_values
from hunch.ranges import check_fields
from hunch.report.gather import Run
from hunch.report.pack import digits, encode

LARGEST = 2_500_000
"""Maximum characters of the blocks of all runs; if exceeded, only some programs and transcripts are
complete."""


def kept(runs: Sequence[Run], *, plain: bool = False, largest: int = LARGEST) -> list[str]:
    """Return one block per run; it is empty if the agent has no records.

    Args:
        runs: The runs.
        plain: Do not compress the blocks: leave them as JSON.
        largest: Maximum characters of all blocks. If exceeded, only every second, fourth ... record is
            complete, the best program with its ancestors, and what improved on all before it; of the others
            only the numbers remain.
    """
    lines = [run.records for run in runs]
    every = 1
    while True:
        shown = [printable_values(list(_entries(programs_of_run, every))) for programs_of_run in lines]
        blocks = [encode(entries, plain=plain) if entries else "" for entries in shown]
        if sum(map(len, blocks)) <= largest or every > max(map(len, lines)):
            return blocks
        every *= 2


def _entries(lines: Sequence[dict[str, Any]], every: int) -> Iterator[dict[str, Any]]:
    programs = {line["number"]: line for line in lines if is_program(line)}
    line_of_best = set(ancestors(programs))
    shown_whole = line_of_best | {line["number"] for line in improvements(list(programs.values()))}
    for i, line in enumerate(lines):
        whole = i % every == 0 or (is_program(line) and line["number"] in shown_whole)
        yield _program(line, programs, line_of_best, whole) if is_program(line) else _other(line, whole)


def is_program(line: dict[str, Any]) -> bool:
    """Return whether a record is a program, as :meth:`hunch.roles.writer.programs.Attempt.line` writes."""
    try:
        check_fields(line, _PROGRAM)
    except UsageError:
        return False
    return True


_PROGRAM = {"number": int, "program": str, "fitness": float | None, "parents": list[int]}
"""Types of a program's record."""


def improvements(programs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the programs, in the order in which they were tried, that are better than all before them."""
    better: list[dict[str, Any]] = []
    for line in programs:
        if line["fitness"] is None:
            continue
        if not better or line["fitness"] > better[-1]["fitness"]:
            better.append(line)
    return better


FEWEST_DRAWS = 8
"""Fewest programs written without parents from which best of n is computed."""


def best_of_n(draws: Sequence[float | None], n: int) -> dict[str, FloatArray] | None:
    """Return the distribution of the best of 1, 2 ... n programs that are drawn from some, with replacement.

    The best of m draws is at most x with probability F(x)^m, where F is the distribution of one draw. So its
    quantile q is that of a single draw at q^(1/m).

    Args:
        draws: Fitness of the programs; None for one that failed, which is worse than any.
        n: The largest number of draws.

    Returns:
        ``low``, ``middle`` and ``high``: quantiles 0.025, 0.5 and 0.975 of the best of m, of shape (n,); nan
        where all m draws fail. None if there are fewer than :data:`FEWEST_DRAWS`, or all failed.
    """
    if len(draws) < FEWEST_DRAWS or all(fitness is None for fitness in draws):
        return None
    one = np.sort([-np.inf if fitness is None else float(fitness) for fitness in draws])  # (draws,)
    m = np.arange(1, n + 1)
    quantiles = {}
    for name, q in (("low", 0.025), ("middle", 0.5), ("high", 0.975)):
        # The smallest x with F(x) >= q^(1/m); the subtraction guards against rounding at a step of F.
        place = np.ceil(q ** (1 / m) * len(one) - 1e-9).astype(int) - 1
        best = one[np.clip(place, 0, len(one) - 1)]
        quantiles[name] = np.where(np.isfinite(best), best, np.nan)
    return quantiles


def chance(run: Run, comparison: Sequence[Run]) -> dict[str, Any] | None:
    """Return the band of best of n for a run's programs; None if it wrote none, or too few to draw from.

    The draws are the programs of the comparison's runs with the same model and ``feedback="fresh"``, each of
    which is written without parents; without such runs, the run's own programs that were. The problem's own
    is no draw. Nor are those of another model: the band would say which model writes better.
    """
    programs = [line for line in run.records if is_program(line)]
    alike = [each for each in comparison if each.config.lm == run.config.lm]
    fresh = [each for each in alike if getattr(each.config.options, "feedback", "") == "fresh"]
    pool = [line for each in fresh or [run] for line in each.records if is_program(line)]
    # Group -1: the problem's own first program, or one that is judged anew. No writer drew these.
    draws = [line["fitness"] for line in pool if not line["parents"] and line.get("group", 0) >= 0]
    band = best_of_n(draws, len(programs)) if programs else None
    if band is None:
        return None
    values = {name: [digits(float(value)) for value in column] for name, column in band.items()}
    return {**values, "draws": len(draws), "own": not fresh}


def ancestors(programs: dict[int, dict[str, Any]]) -> list[int]:
    """Return the numbers of the best program and its ancestors."""
    scored = [line for line in programs.values() if line["fitness"] is not None]
    at = max(scored, key=lambda line: float(line["fitness"]))["number"] if scored else None
    numbers: list[int] = []
    while at in programs and at not in numbers:
        numbers.append(at)
        at = parent(programs[at], programs)
    return numbers


def parent(line: dict[str, Any], programs: dict[int, dict[str, Any]]) -> int | None:
    """Return the parent of a program: the last program in the writer's prompt."""
    there = [number for number in line["parents"] if number in programs]
    return there[-1] if there else None


def _program(
    line: dict[str, Any], programs: dict[int, dict[str, Any]], line_of_best: set[int], whole: bool
) -> dict[str, Any]:
    mother = parent(line, programs)
    fitness = None if line["fitness"] is None else digits(float(line["fitness"]))
    entry = {"number": line["number"], "fitness": fitness, "parent": mother}
    entry["best"] = line["number"] in line_of_best
    if not whole:
        return entry
    before = programs[mother]["program"] if mother is not None else ""
    shown_elsewhere = {"number", "program", "fitness", "parents", "scores", "group"}
    rest = {
        key: value for key, value in line.items() if key not in shown_elsewhere and value not in ("", {}, [])
    }
    return {**entry, "code": difference(before, line["program"]), "fields": _fields(rest)}


def difference(before: str, after: str) -> list[tuple[str, str]]:
    """Return lines of ``after`` and deleted lines of ``before``: " " kept, "+" new, "-" deleted.

    If ``before`` is empty, all lines count as kept.
    """
    old, new = before.splitlines(), after.splitlines()
    if not old:
        return [(" ", text) for text in new]
    lines = list[tuple[str, str]]()
    for kind, low, high, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += [(" ", text) for text in new[start:end]]
        else:
            lines += [("-", text) for text in old[low:high]] + [("+", text) for text in new[start:end]]
    return lines


def _other(line: dict[str, Any], whole: bool) -> dict[str, Any]:
    """Return a record that is not a program, such as the transcript of a plan."""
    title = next((str(line[key]) for key in ("task", "goal", "kind") if line.get(key)), "")
    return {"title": title, **({"fields": _fields(line)} if whole else {})}


def _fields(line: dict[str, Any]) -> list[tuple[str, str | list[str]]]:
    """Return names and values as text; a list of texts stays a list."""
    return [(name, _text(value)) for name, value in line.items()]


def _text(value: Any) -> str | list[str]:
    if isinstance(value, dict):
        return [f"{name}: {_flat(inner)}" for name, inner in value.items()]
    return [_flat(inner) for inner in value] if isinstance(value, (list, tuple)) else _flat(value)


def _flat(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
