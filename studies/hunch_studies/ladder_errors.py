"""Of which kinds are the errors of real models? Read from the recorded answers of the ladder.

    hunch study ladder --out FOLDER --unpack docs/assets/studies/ladder/*.tar.xz
    python -m hunch_studies.ladder_errors FOLDER

Judges: how often they say Yes to what met the objective and to what did not, and whether errors last (0 if
they are noise, 1 if a wrong verdict is always wrong again). Models that write one of a list: how often it is
the first, beside a choice at random. Models that write freely: how often no answer can be read.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hunch.rl.statistics import over_pairs
from hunch.runs.files import read_lines
from hunch_studies.ladder import ANSWERS, CELLS, STAND_INS, read_cell
from hunch_studies.planners import table

Cell = Mapping[str, Any]
Cells = Mapping[Path, Cell]
"""Cells of models, by the file of their recorded answers."""


def cells_of(folder: Path) -> Cells:
    """Return the cells of models in a folder of the ladder."""
    cells = {}
    for file in sorted((folder / CELLS).glob("*.json")):
        cell = read_cell(file)
        if cell["rung"] not in STAND_INS:
            cells[folder / ANSWERS / f"{file.stem}.jsonl"] = cell
    return cells


def name_of(cell: Cell) -> tuple[str, str, str, str, str]:
    """Return stage, role, model, way and prompt of a cell."""
    prompt = "blank" if cell["blank"] else "usual"
    return cell["stage"], cell["role"], cell["rung"], cell["way"], prompt


def verdicts(cells: Cells) -> list[tuple[Any, ...]]:
    """Return a row for each judge of outcomes: its verdicts by what was true, and whether errors recur."""
    rows = []
    for cell in cells.values():
        if cell["role"] != "judge":
            continue
        for bed in cell["beds"]:
            seen = bed["columns"]
            said = [seen["true positives"], seen["false positives"], seen["no verdict"]]
            recurring = seen["lasting errors"]
            rows.append(
                (
                    *name_of(cell),
                    bed["env"].removeprefix("hunch/"),
                    len(bed["values"]),
                    *(f"{share:.2f}" for share in said),
                    "" if recurring is None or np.isnan(recurring) else f"{recurring:.2f}",
                )
            )
    return rows


def first_options(cells: Cells) -> list[tuple[Any, ...]]:
    """Return a row for each model that wrote one of a list: how often it is the first, and by chance.

    A question that was asked several times counts once, with the share of its answers. Intervals are over
    questions.
    """
    rows = []
    for file, cell in cells.items():
        if cell["role"] not in ("prior", "planner") or cell["way"] != "structured":
            continue
        by_question: dict[str, list[bool]] = {}
        by_chance: dict[str, float] = {}
        for line in read_lines(file):
            prompt, settings = line["request"]
            options = settings[-1]  # the texts to which the answer was restricted, in their order
            by_question.setdefault(prompt, []).append(line["value"] == options[0])
            by_chance[prompt] = 1 / len(options)
        shares = [float(np.mean(first)) for first in by_question.values()]
        lead = over_pairs(
            [share - by_chance[prompt] for prompt, share in zip(by_question, shares, strict=True)]
        )
        chance = float(np.mean(list(by_chance.values())))
        rows.append((*name_of(cell), len(shares), f"{np.mean(shares):.2f}", f"{chance:.2f}", lead.short()))
    return rows


def unread(cells: Cells) -> list[tuple[Any, ...]]:
    """Return a row for each model that wrote freely: the share of its answers that could not be read.

    It is the mean over the environments.
    """
    rows = []
    for cell in cells.values():
        if cell["way"] in ("text", "text-unlisted"):
            share = np.mean([bed["unread"] for bed in cell["beds"]])
            rows.append((*name_of(cell), cell["questions"], f"{share:.2f}"))
    return rows


def page(folder: Path) -> str:
    """Return the tables in Markdown."""
    name = "stage | role | model | way | prompt"
    judges = f"{name} | environment | episodes | Yes to right | Yes to wrong | no verdict | errors that last"
    lists = f"{name} | questions | the first of the list | by chance | difference"
    free = f"{name} | questions | unread"
    cells = cells_of(folder)
    tables = (judges, verdicts(cells)), (lists, first_options(cells)), (free, unread(cells))
    return "\n\n".join(table(head, rows) for head, rows in tables)


if __name__ == "__main__":
    print(page(Path(sys.argv[1])))
