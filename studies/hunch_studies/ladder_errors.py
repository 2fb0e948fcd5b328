"""Of which kinds are the errors of real models? Read from the recorded answers of the ladder.

    hunch study ladder --out FOLDER --unpack docs/assets/studies/ladder/*.tar.xz
    python -m hunch_studies.ladder_errors FOLDER

Judges: how often they say Yes to what met the objective and to what did not, and whether a wrong verdict is
wrong again. Models that write one of a list: how often it is the first, beside a choice at random. Models
that write freely: how often no answer can be read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hunch.runs.files import read_lines
from hunch_studies.ladder import ANSWERS, CELLS, STAND_INS
from hunch_studies.planners import table

Cell = Mapping[str, Any]


def cells(folder: Path) -> Iterator[tuple[Cell, Path]]:
    """Yield the cells of models, each with the file of its recorded answers."""
    for file in sorted((folder / CELLS).glob("*.json")):
        cell = json.loads(file.read_text(encoding="utf-8"))
        if cell["rung"] not in STAND_INS:
            yield cell, folder / ANSWERS / f"{file.stem}.jsonl"


def name_of(cell: Cell) -> tuple[str, str, str, str]:
    """Return role, model, way and prompt of a cell."""
    return cell["role"], cell["rung"], cell["way"], "blank" if cell["blank"] else "usual"


def verdicts(folder: Path) -> list[tuple[Any, ...]]:
    """Return a row for each judge of outcomes: its verdicts by what was true, and whether errors recur."""
    rows = []
    for cell, _ in cells(folder):
        if cell["role"] != "judge":
            continue
        for bed in cell["beds"]:
            seen = bed["columns"]
            said = [seen["true positives"], seen["false positives"], seen["no verdict"]]
            recurring = seen["lasting errors"]
            rows.append(
                (
                    *name_of(cell)[1:],
                    bed["env"].removeprefix("hunch/"),
                    len(bed["values"]),
                    *(f"{share:.2f}" for share in said),
                    "" if recurring is None or np.isnan(recurring) else f"{recurring:.2f}",
                )
            )
    return rows


def places(folder: Path) -> list[tuple[Any, ...]]:
    """Return a row for each model that wrote one of a list: how often it was the first, and by chance."""
    rows = []
    for cell, file in cells(folder):
        if cell["role"] not in ("prior", "planner") or cell["way"] != "structured":
            continue
        first, by_chance, texts = list[bool](), list[float](), set[str]()
        for line in read_lines(file):
            options = line["request"][1][-1]
            first.append(line["value"] == options[0])
            by_chance.append(1 / len(options))
            texts.add(line["value"])
        shares = f"{np.mean(first):.2f}", f"{np.mean(by_chance):.2f}"
        rows.append((*name_of(cell), len(first), *shares, len(texts)))
    return rows


def unread(folder: Path) -> list[tuple[Any, ...]]:
    """Return a row for each model that wrote freely: the share of its answers that could not be read.

    It is the mean over the environments, which have the same number of questions.
    """
    rows = []
    for cell, _ in cells(folder):
        if cell["way"] in ("text", "text-unlisted"):
            share = np.mean([bed["unread"] for bed in cell["beds"]])
            rows.append((*name_of(cell), cell["questions"], f"{share:.2f}"))
    return rows


def page(folder: Path) -> str:
    """Return the tables in Markdown."""
    judges = "model | way | prompt | environment | episodes | Yes to right | Yes to wrong | none | again"
    lists = "role | model | way | prompt | answers | the first of the list | by chance | different answers"
    free = "role | model | way | prompt | questions | unread"
    tables = (judges, verdicts(folder)), (lists, places(folder)), (free, unread(folder))
    return "\n\n".join(table(head, rows) for head, rows in tables)


if __name__ == "__main__":
    print(page(Path(sys.argv[1])))
