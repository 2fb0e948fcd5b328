"""Programs that a small real model wrote when asked afresh, beside random changes of a first program.

    hunch study writers-drawn --data docs/assets/studies

The programs are recorded. They were written by Qwen2.5-Coder-1.5B-Instruct (the shelf's ``qwen-coder-1.5b``,
its Q4_K_M weights computed in bfloat16 by the transformers library, on one H100), with the settings of
``hunch study writers``, whose runs ended early: the time on the machine was over. So the searches, which wait
for one answer before they ask for the next, have 8 to 24 programs, too few to compare them. Best of n has 16
to 48. This study compares it with the mutator, which knows nothing, at equal numbers of programs.
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
from hunch_studies.writers import BEST_OF_N, RANDOM, tried
from hunch_studies.writers_beds import BEDS, Bed

RECORDED: Final = "writers-drawn.programs.jsonl.gz"
"""The file of recorded programs in the folder of --data."""
HERE: Final = "docs/assets/studies"
"""That folder in the repository."""
COMPARED: Final = 24
"""Maximum number of programs of a run that are compared: few runs have more."""
AFTER: Final = (8, 16)
"""Numbers of programs after which the best is shown, too."""


@cache
def recorded(folder: Path) -> dict[tuple[str, str, int], list[dict[str, Any]]]:
    """Read the programs of each bed, arm and seed, in the order in which they were written.

    Raises:
        UsageError: if the file is not there.
    """
    file = folder / RECORDED
    if not file.exists():
        raise UsageError(f"There is no {file}: give the folder of the recorded programs, --data FOLDER.")
    runs: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for line in gzip.decompress(file.read_bytes()).decode().splitlines():
        row = json.loads(line)
        runs.setdefault((row["bed"], row["arm"], row["seed"]), []).append(row)
    return {key: sorted(rows, key=lambda row: int(row["number"])) for key, rows in runs.items()}


def fitness(row: dict[str, Any]) -> float:
    """Return the fitness of a program, -inf if it failed."""
    return -np.inf if row["fitness"] is None else float(row["fitness"])


def winner(bed: Bed, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
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
    """Return the table of a bed: best programs, the winner on unseen inputs, and its lead."""
    bed = BEDS[name]
    runs = recorded(data)
    seeds = sorted({seed for where, arm, seed in runs if where == name and arm == BEST_OF_N})
    of_arm = {arm: [runs[name, arm, seed] for seed in seeds] for arm in (BEST_OF_N, RANDOM)}
    n = min(COMPARED, *(len(rows) for own in of_arm.values() for rows in own))

    def again(arm: str, seed: int) -> dict[str, Any]:
        return winner(bed, of_arm[arm][seeds.index(seed)][:n])

    keys = [(arm, seed) for arm in of_arm for seed in seeds]
    won = dict(zip(keys, kept(folder / "winners.jsonl", keys, again), strict=True))
    lines = []
    for arm, own in of_arm.items():
        cells: list[Any] = [over_seeds([max(map(fitness, rows[:m])) for rows in own]) for m in (*AFTER, n)]
        cells.append(over_seeds([won[arm, seed]["unseen"] for seed in seeds]))
        cells.append(f"{np.mean([row['fitness'] is None for rows in own for row in rows[:n]]):.0%}")
        lead = over_pairs([won[arm, s]["unseen"] - won[RANDOM, s]["unseen"] for s in seeds])
        lines.append((arm, *cells, "" if arm == RANDOM else lead.short()))
    same = sum(
        won[arm, seed]["again"] == max(map(fitness, of_arm[arm][seeds.index(seed)][:n])) for arm, seed in keys
    )
    after = " | ".join(f"best of {m}" for m in (*AFTER, n))
    head = f"arm | {after} | winner of {n}, unseen | failed | ahead of random changes by"
    return (
        f"{len(seeds)} seeds, {n} programs each. Of {len(keys)} winners, {same} have the recorded fitness "
        f"when they are evaluated again.\n\n{table_of(head, lines)}"
    )


def _parts(scale: Scale, data: Path) -> list[Part]:
    source = Path(scale.data or HERE)
    return [Part(name, (), beside=partial(drawn, name, source), apart=True) for name in BEDS]


STUDIES = {
    "writers-drawn": Study(
        "writers-drawn",
        "Does a small real model, asked afresh, write better programs than random changes of a first one?",
        "None for writers of this size.",
        "One writer, one request. The mutator changes programs that it was given, so it knows the form of a "
        "policy. At most 24 programs: the searches of `hunch study writers` are not compared.",
        _parts,
        seeds=5,
        recorded=f"the recorded programs in {HERE} of the repository",
    )
}
