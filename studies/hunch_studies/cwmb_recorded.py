"""World models that a small real model wrote on the Code World Models Benchmark, with the authors' few calls.

    python -m hunch_studies.cwmb_recorded docs/assets/studies

The programs are recorded, so that everybody can repeat the table without the model. They are those of
``hunch study cwmb --part "10 calls"``; each best one is evaluated again on the transitions of the authors.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from hunch.envs.design.world_model import START
from hunch.rl.statistics import over_pairs
from hunch_studies.cwmb_models import (
    BASES,
    PLAIN,
    SINGLE_CLASSES,
    TREE,
    TREE_OF_CLASSES,
    accuracy,
    form_of,
)
from hunch_studies.planners import table
from hunch_studies.recorded_rows import json_lines
from hunch_studies.writers_drawn import fitness

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
RECORDED_ARMS: Final = (PLAIN, TREE, SINGLE_CLASSES, TREE_OF_CLASSES)
COMPARED: Final = (
    (TREE, PLAIN),
    (TREE_OF_CLASSES, PLAIN),
    (TREE_OF_CLASSES, TREE),
    (TREE_OF_CLASSES, SINGLE_CLASSES),
)
"""The first differs in search and request, the second in the form as well, the third in the form, the last in
the search."""


def page(folder: Path) -> str:
    """Return the accuracy of the best programs of each environment, and how far the arms are apart."""
    runs: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = {}
    for row in json_lines(folder / RECORDED):
        runs.setdefault((row["bed"], row["arm"]), {}).setdefault(row["seed"], []).append(row)

    lines = []
    accuracies: dict[str, dict[str, dict[int, float]]] = {}  # by environment and arm, then by seed
    floors: dict[str, float] = {}
    for bed in BASES:
        floors[bed] = accuracy(bed, START)["accuracy"]
        cells: list[str] = []
        accuracies[bed] = {}
        for arm in RECORDED_ARMS:
            by_seed = runs.get((bed, arm), {})
            accuracies[bed][arm] = {
                seed: _accuracy_of_best(bed, arm, rows) for seed, rows in sorted(by_seed.items())
            }
            cells.append(", ".join(f"{value:.2f}" for value in accuracies[bed][arm].values()))
            failed = [row["fitness"] is None for rows in by_seed.values() for row in rows]
            cells.append(f"{np.mean(failed):.0%}" if failed else "")
        lines.append((bed, f"{floors[bed]:.2f}", *cells, *(f"{value:.2f}" for value in PUBLISHED[bed])))
    arms = " | failed | ".join(RECORDED_ARMS)
    head = f"environment | nothing changes | {arms} | failed | Llama-3-70B, 50 calls | GPT-4 Turbo, 10 calls"

    leads = []
    for one, other in COMPARED:
        differences = []
        for bed in BASES:
            seeds = accuracies[bed][one].keys() & accuracies[bed][other].keys()
            if seeds:
                by_seed_lead = [accuracies[bed][one][seed] - accuracies[bed][other][seed] for seed in seeds]
                differences.append(float(np.mean(by_seed_lead)))
        if len(differences) > 1:
            leads.append((f"{one} less {other}", len(differences), over_pairs(differences).short()))
    for arm in RECORDED_ARMS:
        gains = [
            float(np.mean([*accuracies[bed][arm].values()])) - floors[bed]
            for bed in BASES
            if accuracies[bed][arm]
        ]
        if len(gains) > 1:
            leads.append((f"{arm} less nothing changes", len(gains), over_pairs(gains).short()))
    shown = table("accuracy | environments | difference, paired by environment", leads)
    answered = table("arm | programs | failed | failed as a class with a method step", _forms(runs))
    return f"{table(head, lines)}\n\nA cell has the accuracy of each seed.\n\n{shown}\n\n{answered}"


def _forms(runs: Mapping[tuple[str, str], Mapping[int, list[dict[str, Any]]]]) -> list[tuple[Any, ...]]:
    """Return for each arm how many programs failed, and how many of those are a class with a method ``step``.

    There a function ``step`` was asked for, so the arms of classes have no such number.
    """
    lines = []
    for arm in RECORDED_ARMS:
        by_seeds = [by_seed for (_, label), by_seed in runs.items() if label == arm]
        programs = [row for by_seed in by_seeds for rows in by_seed.values() for row in rows]
        failed = [row for row in programs if row["fitness"] is None]
        as_class = sum(_has_method(row["program"]) for row in failed)
        if programs:
            lines.append((arm, len(programs), len(failed), as_class if form_of(arm) == "function" else ""))
    return lines


def _has_method(program: str) -> bool:
    """Return whether a program has a class with a method ``step``, and no such function."""
    try:
        body = ast.parse(program).body
    except SyntaxError:
        return False
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    methods = [
        part.name
        for node in body
        if isinstance(node, ast.ClassDef)
        for part in node.body
        if isinstance(part, ast.FunctionDef)
    ]
    return "step" in methods and "step" not in functions


def _accuracy_of_best(bed: str, arm: str, rows: list[dict[str, Any]]) -> float:
    """Return the accuracy of a run's best program on all transitions; 0 if every program failed."""
    best = max(rows, key=fitness)
    return 0.0 if best["fitness"] is None else accuracy(bed, best["program"], form_of(arm))["accuracy"]


if __name__ == "__main__":
    print(page(Path(sys.argv[1])))
