"""World models that a small real model wrote on the Code World Models Benchmark, with the authors' few calls.

    python -m hunch_studies.cwmb_recorded docs/assets/studies

The programs are recorded, so that everybody can repeat the table without the model. They are those of
``hunch study cwmb --part "10 calls"``; each best one is evaluated again on the transitions of the authors.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.envs.design.world_model import START
from hunch.rl.statistics import over_pairs
from hunch_studies.cwmb_models import BASES, PLAIN, TREE, accuracy
from hunch_studies.planners import table
from hunch_studies.writers_drawn import fitness, json_lines

RECORDED: Final = "cwmb.programs.jsonl.gz"
"""The recorded programs, with ``bed``, ``arm``, ``seed``, ``number``, ``program``, ``fitness``, ``error``."""
PUBLISHED: Final[dict[str, tuple[float, float]]] = {
    "CartPole-v1": (1.00, 1.00),
    "CliffWalking-v0": (1.00, 1.00),
    "MountainCar-v0": (1.00, 1.00),
    "Taxi-v3": (0.92, 0.99),
    "Acrobot-v1": (0.54, 0.53),
    "Pendulum-v1": (0.34, 0.38),
}
"""Accuracy of GIF-MCTS, with Llama-3-70B after 50 calls, with GPT-4 Turbo after 10 (Dainese et al. 2024)."""


def page(folder: Path) -> str:
    """Return the accuracy of the best programs of each environment, and the lead of the tree search."""
    runs: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = {}
    for row in json_lines(folder / RECORDED):
        runs.setdefault((row["bed"], row["arm"]), {}).setdefault(row["seed"], []).append(row)

    lines = []
    leads: list[float] = []
    gains: list[float] = []
    for bed in BASES:
        floor = accuracy(bed, START)["accuracy"]
        cells: list[str] = []
        won: dict[str, dict[int, float]] = {}
        for arm in (PLAIN, TREE):
            by_seed = runs.get((bed, arm), {})
            won[arm] = {seed: _accuracy_of_best(bed, rows) for seed, rows in sorted(by_seed.items())}
            cells.append(", ".join(f"{value:.2f}" for value in won[arm].values()))
            failed = [row["fitness"] is None for rows in by_seed.values() for row in rows]
            cells.append(f"{np.mean(failed):.0%}" if failed else "")
        if won[PLAIN]:
            gains.append(float(np.mean(list(won[PLAIN].values()))) - floor)
        shared = won[TREE].keys() & won[PLAIN].keys()
        if shared:
            leads.append(float(np.mean([won[TREE][seed] - won[PLAIN][seed] for seed in shared])))
        lines.append((bed, f"{floor:.2f}", *cells, *(f"{value:.2f}" for value in PUBLISHED[bed])))
    head = (
        f"environment | nothing changes | {PLAIN}, by seed | failed | {TREE}, by seed | failed | "
        "Llama-3-70B, 50 calls | GPT-4 Turbo, 10 calls"
    )
    return (
        f"{table(head, lines)}\n\nPaired over {len(leads)} environments, {TREE} is ahead of best of n by "
        f"{over_pairs(leads).short()} on the seeds of both, and best of n, in the mean of its seeds, of a "
        f"program in which nothing changes by {over_pairs(gains).short()}."
    )


def _accuracy_of_best(bed: str, rows: list[dict[str, Any]]) -> float:
    """Return the accuracy of a run's best program on all transitions; 0 if every program failed."""
    best = max(rows, key=fitness)
    return 0.0 if best["fitness"] is None else accuracy(bed, best["program"])["accuracy"]


if __name__ == "__main__":
    print(page(Path(sys.argv[1])))
