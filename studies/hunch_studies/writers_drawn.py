"""Programs that a small real model wrote, by three searches and by random changes of a first program.

    hunch study writers-drawn --data docs/assets/studies

The programs are recorded, so that everybody can repeat the table without the model. They were written by
Qwen2.5-Coder-1.5B-Instruct (the shelf's ``qwen-coder-1.5b``, its Q4_K_M weights computed in bfloat16 on an
H100) with the settings of ``hunch study writers``. A row says how many tokens its request and its answer
have. The time on the machine ended before some searches did: see :func:`compared`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import UsageError
from hunch.rl.statistics import over_pairs, over_seeds
from hunch_studies.planners import table as table_of
from hunch_studies.study import Part, Scale, Study, kept
from hunch_studies.writers import AFTER, BEST_OF_N, PROGRAMS, RANDOM, tried
from hunch_studies.writers_beds import BEDS, Bed

RECORDED: Final = "writers-drawn.programs.jsonl.gz"
"""The file of recorded programs in the folder of --data."""
HERE: Final = "docs/assets/studies"
"""That folder in the repository."""
ENOUGH: Final = 4
"""Seeds with all programs that an arm needs to be compared at all programs."""

Row = dict[str, Any]
"""A recorded program: ``bed``, ``arm``, ``seed``, ``number``, ``program``, ``fitness``, ``tokens`` …"""


@cache
def recorded(folder: Path) -> dict[tuple[str, str, int], list[Row]]:
    """Read the programs of each bed, arm and seed, in the order in which they were written.

    Raises:
        UsageError: if the file is not there.
    """
    file = folder / RECORDED
    if not file.exists():
        raise UsageError(f"There is no {file}: give the folder of the recorded programs, --data FOLDER.")
    runs: dict[tuple[str, str, int], list[Row]] = {}
    for row in json_lines(file):
        runs.setdefault((row["bed"], row["arm"], row["seed"]), []).append(row)
    return {key: sorted(rows, key=lambda row: int(row["number"])) for key, rows in runs.items()}


def json_lines(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a compressed file of JSON lines."""
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).decode().splitlines()]


def fitness(row: Row) -> float:
    """Return the fitness of a program, -inf if it failed."""
    return -np.inf if row["fitness"] is None else float(row["fitness"])


def compared(runs: dict[str, dict[int, list[Row]]]) -> int:
    """Return after how many programs the arms of a bed are compared.

    Args:
        runs: The runs of a bed by arm and seed.

    Returns:
        All programs of a run, if at least four seeds of each arm have them; then the other seed is left out.
        Else the largest number that every run has.
    """
    lengths = [[len(rows) for rows in by_seed.values()] for by_seed in runs.values()]
    if all(sum(length >= PROGRAMS for length in own) >= ENOUGH for own in lengths):
        return PROGRAMS
    return min(min(own) for own in lengths)


def affordable(rows: Sequence[Row], tokens: int) -> list[Row]:
    """Return the first programs of a run that together took at most so many tokens, at least one."""
    spent = np.cumsum([row["tokens"] for row in rows])
    return list(rows[: max(1, int((spent <= tokens).sum()))])


def winner(bed: Bed, rows: Sequence[Row]) -> dict[str, Any]:
    """Evaluate the best of some programs again.

    Returns:
        ``again``: its fitness on the inputs of the search, evaluated now; ``unseen``: that on unseen inputs,
        or the bed's floor if every program failed.
    """
    best = max(rows, key=fitness)
    if best["fitness"] is None:
        return {"again": None, "unseen": bed.floor}
    again = tried(bed.env, bed.options, best["program"])
    if bed.unseen:
        unseen = tried(bed.env, bed.unseen, best["program"]).fitness
        return {"again": again.fitness, "unseen": bed.floor if unseen is None else unseen}
    return {"again": again.fitness, "unseen": again.components["held_out"]}  # of a world model


def drawn(name: str, data: Path, folder: Path) -> str:
    """Return the table of a bed: best programs, winners on unseen inputs, and their leads."""
    bed = BEDS[name]
    runs: dict[str, dict[int, list[Row]]] = {}
    for (where, arm, seed), rows in recorded(data).items():
        if where == name:
            runs.setdefault(arm, {})[seed] = rows
    n = compared(runs)
    # The programs that are compared: of each arm and seed n, and those that the tokens of best of n pay for.
    programs = {arm: {s: rows[:n] for s, rows in own.items() if len(rows) >= n} for arm, own in runs.items()}
    budget = {seed: _tokens(rows) for seed, rows in programs[BEST_OF_N].items()}

    def won(arm: str, seed: int, how: str) -> dict[str, Any]:
        rows = programs[arm][seed]
        return winner(bed, affordable(rows, budget[seed]) if how == "tokens" else rows)

    keys = [(arm, seed, "programs") for arm, own in programs.items() for seed in own]
    keys += [(arm, seed, "tokens") for arm, seed, _ in keys if arm not in (BEST_OF_N, RANDOM)]
    of = dict(zip(keys, kept(folder / "winners.jsonl", keys, won), strict=True))

    def lead(arm: str, how: str, other: str) -> str:
        if (arm, next(iter(programs[arm])), how) not in of or arm == other:
            return ""
        pairs = [(of[arm, s, how], of[other, s, "programs"]) for s in programs[arm] if s in programs[other]]
        return over_pairs([mine["unseen"] - theirs["unseen"] for mine, theirs in pairs]).short()

    shown = [m for m in AFTER if m <= n]
    lines = []
    for arm, own in programs.items():
        cells: list[Any] = [
            over_seeds([max(bed.floor, *map(fitness, rows[:m])) for rows in own.values()]) for m in shown
        ]
        cells.append(over_seeds([of[arm, seed, "programs"]["unseen"] for seed in own]))
        every = [row for rows in own.values() for row in rows]
        cells.append(f"{np.mean([row['fitness'] is None for row in every]):.0%}")
        cells.append(f"{np.mean([row['copy_of'] is not None for row in every]):.0%}")
        tokens = float(np.mean([_tokens(rows) for rows in own.values()]))
        cells.append(f"{tokens:,.0f}" if tokens else "")
        cells += [lead(arm, how, BEST_OF_N) for how in ("programs", "tokens")]
        lines.append((arm, len(own), *cells, lead(arm, "programs", RANDOM)))
    same = sum(of[key]["again"] == _best(programs, key) for key in keys if key[2] == "programs")
    after = " | ".join(f"best of {m}" for m in shown)
    head = (
        f"arm | seeds | {after} | winner of {n}, unseen | failed | copies | tokens | ahead of best of n, "
        "equal programs | equal tokens | ahead of random changes"
    )
    count = sum(key[2] == "programs" for key in keys)
    return (
        f"{n} programs each. Of {count} winners, {same} have the recorded fitness when they are evaluated "
        f"again.\n\n{table_of(head, lines)}"
    )


def _tokens(rows: Sequence[Row]) -> int:
    return sum(row["tokens"] or 0 for row in rows)


def _best(programs: dict[str, dict[int, list[Row]]], key: tuple[str, int, str]) -> float | None:
    best = max(map(fitness, programs[key[0]][key[1]]))
    return None if best == -np.inf else best


def _parts(scale: Scale, data: Path) -> list[Part]:
    source = Path(scale.data or HERE)
    return [Part(name, (), beside=partial(drawn, name, source), apart=True) for name in BEDS]


STUDIES = {
    "writers-drawn": Study(
        "writers-drawn",
        "With a small real model as the writer: do searches find better programs than asking afresh, and is "
        "that better than random changes of a first program?",
        "None for writers of this size.",
        "One writer, one request. The mutator changes programs that it was given, so it knows the form of a "
        "policy.",
        _parts,
        seeds=5,
        recorded=f"the recorded programs in {HERE} of the repository",
    )
}
