"""Programs that a small real model wrote, by three searches and by random changes of a first program.

    hunch study writers-drawn --data docs/assets/studies

The programs are recorded, so that everybody can repeat the table without the model. They were written by
Qwen2.5-Coder-1.5B-Instruct (the shelf's ``qwen-coder-1.5b``, its Q4_K_M weights computed in bfloat16 on an
H100) with the settings of ``hunch study writers``. A row says how many tokens its request and its answer
have. The time on the machine ended before some searches did: see :func:`compared`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.core import UsageError
from hunch.rl.statistics import over_pairs, over_seeds
from hunch_studies.planners import table as table_of
from hunch_studies.recorded_rows import json_lines
from hunch_studies.study import Part, Scale, Study, kept
from hunch_studies.writers import AFTER, BEST_OF_N, OPENEVOLVE, PROGRAMS, RANDOM, tried
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
    """Return the tables of a bed: best programs, winners on unseen inputs, and their leads."""
    bed = BEDS[name]
    runs: dict[str, dict[int, list[Row]]] = {}
    for (where, arm, seed), rows in recorded(data).items():
        if where == name:
            runs.setdefault(arm, {})[seed] = rows
    evolved = runs.pop(OPENEVOLVE, None)
    tables = [all_programs(bed, runs, folder)]
    if evolved is not None:
        tables.append(beside_openevolve(bed, {**runs, OPENEVOLVE: evolved}, folder))
    return "\n\n".join(tables)


class Winners:
    """The winners of a bed after so many programs, each evaluated again.

    Args:
        bed: The bed.
        programs: The programs that are compared, by arm and seed.
        budgets: Tokens that the programs of a run may have taken, by seed, for :meth:`lead` at equal tokens.
        folder: Folder in which evaluations are kept.
    """

    def __init__(
        self,
        bed: Bed,
        programs: dict[str, dict[int, list[Row]]],
        budgets: dict[int, int],
        folder: Path,
    ) -> None:
        self.programs = programs
        most = max(len(rows) for by_seed in programs.values() for rows in by_seed.values())
        keys = [(arm, seed, "programs", most) for arm, by_seed in programs.items() for seed in by_seed]
        if budgets:
            keys += [
                (arm, seed, "tokens", most) for arm, seed, _, _ in keys if arm not in (BEST_OF_N, RANDOM)
            ]

        def won(arm: str, seed: int, how: str, _: int) -> dict[str, Any]:
            rows = programs[arm][seed]
            return winner(bed, affordable(rows, budgets[seed]) if how == "tokens" else rows)

        rows = kept(folder / "winners.jsonl", keys, won)
        self.of = {(arm, seed, how): row for (arm, seed, how, _), row in zip(keys, rows, strict=True)}

    def unseen(self, arm: str) -> str:
        """Return the fitness of an arm's winners on unseen inputs."""
        return over_seeds([self.of[arm, seed, "programs"]["unseen"] for seed in self.programs[arm]]).short()

    def lead(self, arm: str, how: str, other: str) -> str:
        """Return by how much the winners of an arm are ahead of another's, paired by seed; or nothing."""
        if (arm, next(iter(self.programs[arm])), how) not in self.of or arm == other:
            return ""
        both = [seed for seed in self.programs[arm] if seed in self.programs[other]]
        gaps = [
            self.of[arm, seed, how]["unseen"] - self.of[other, seed, "programs"]["unseen"] for seed in both
        ]
        return over_pairs(gaps).short()


def all_programs(bed: Bed, runs: dict[str, dict[int, list[Row]]], folder: Path) -> str:
    """Return the table of a bed at all programs that its runs have."""
    n = compared(runs)
    # The programs that are compared: of each arm and seed n, and those that the tokens of best of n pay for.
    programs = {arm: {s: rows[:n] for s, rows in own.items() if len(rows) >= n} for arm, own in runs.items()}
    budgets = {seed: _tokens(rows) for seed, rows in programs[BEST_OF_N].items()}
    winners = Winners(bed, programs, budgets, folder)

    shown = [m for m in AFTER if m <= n]
    lines = []
    for arm, own in programs.items():
        cells: list[Any] = [
            over_seeds([max(bed.floor, *map(fitness, rows[:m])) for rows in own.values()]) for m in shown
        ]
        cells += [winners.unseen(arm), *_shares(own)]
        tokens = float(np.mean([_tokens(rows) for rows in own.values()]))
        cells.append(f"{tokens:,.0f}" if tokens else "")
        cells += [winners.lead(arm, how, BEST_OF_N) for how in ("programs", "tokens")]
        lines.append((arm, len(own), *cells, winners.lead(arm, "programs", RANDOM)))
    keys = [key for key in winners.of if key[2] == "programs"]
    same = sum(winners.of[key]["again"] == _best(programs, key) for key in keys)
    after = " | ".join(f"best of {m}" for m in shown)
    head = (
        f"arm | seeds | {after} | winner of {n}, unseen | failed | copies | tokens | ahead of best of n, "
        "equal programs | equal tokens | ahead of random changes"
    )
    return (
        f"{n} programs each. Of {len(keys)} winners, {same} have the recorded fitness when they are "
        f"evaluated again.\n\n{table_of(head, lines)}"
    )


def beside_openevolve(bed: Bed, runs: dict[str, dict[int, list[Row]]], folder: Path) -> str:
    """Return the table of a bed with openevolve beside the arms, at as many programs as it has written."""
    n = min(len(rows) for rows in runs[OPENEVOLVE].values())
    programs = {arm: {s: rows[:n] for s, rows in own.items() if len(rows) >= n} for arm, own in runs.items()}
    winners = Winners(bed, programs, {}, folder)
    lines = [
        (arm, len(own), winners.unseen(arm), *_shares(own), winners.lead(arm, "programs", OPENEVOLVE))
        for arm, own in programs.items()
    ]
    head = f"arm | seeds | winner of {n}, unseen | failed | copies | ahead of openevolve"
    return f"{n} programs each, openevolve beside them.\n\n{table_of(head, lines)}"


def _shares(by_seed: dict[int, list[Row]]) -> list[str]:
    """Return the shares of an arm's programs that failed and that are copies."""
    every = [row for rows in by_seed.values() for row in rows]
    return [
        f"{np.mean([row['fitness'] is None for row in every]):.0%}",
        f"{np.mean([row['copy_of'] is not None for row in every]):.0%}",
    ]


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
