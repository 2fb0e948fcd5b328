"""Comma-separated values: no text of others is a formula of a spreadsheet, and numbers stay numbers."""

import csv
import io
from pathlib import Path

import pytest

import hunch
from hunch.cli.main import main
from hunch.report.cells import as_csv
from hunch.runs.files import read_json, write_json

ATTACK = "=HYPERLINK(A1)"


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    "name",
    [
        *("=1+1", "+cmd|x", "-2+3", "@SUM(A1)", "\t=1", " =1", "\n=1", "=\n1", "\uff1d1", "--1"),
        *("-", "=", "a", "", "'=1"),
    ],
)
def test_a_text_that_begins_a_formula_has_an_apostrophe(name):
    shown = read(as_csv(["arm"], [{"arm": name}]))[0]["arm"]
    is_formula = name.lstrip()[:1] in {*"=+-@\uff1d"} - {""} and len(name.strip()) > 1
    assert shown == (f"'{name}" if is_formula else name)


def test_a_text_begins_no_cell_of_its_own():
    """Elsewhere a semicolon or a tab separates cells: only within quotes does none."""
    for name in ("a;=1+1", "a\t=1+1", 'a",=1+1', "a,=1+1"):
        text = as_csv(["arm", "seeds"], [{"arm": name, "seeds": 3}])
        assert text.splitlines()[1].startswith('"')
        assert read(text) == [{"arm": name, "seeds": "3"}]


def test_numbers_stay_numbers():
    numbers = {"a": -1.5, "b": 0, "c": -1e-9, "d": None, "e": float("nan"), "f": "-1.5", "g": "+2"}
    text = as_csv(list(numbers), [numbers, {}])
    assert text.splitlines()[1:] == ['-1.5,0,-1e-09,"",nan,"-1.5","+2"', '"","","","","","",""']


def test_names_of_columns_are_texts_of_others_too():
    assert list(read(as_csv(["=1+1"], [{"=1+1": 1}]))[0]) == ["'=1+1"]


def test_a_report_of_a_strangers_run_holds_no_formula(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hunch.train("q-learning", "hunch/FrozenLake-v0", 400, out="run")
    config = read_json(Path("run/config.json"))
    config["run"]["env"] = ATTACK
    write_json(Path("run/config.json"), config)
    main(["report", "run", "--out", "page.html"])
    for name, column in (("page.csv", "environment"), ("page.curves.csv", "comparison")):
        rows = read(Path(name).read_text())
        assert rows
        assert all(row[column].startswith(f"'{ATTACK}") for row in rows)
        assert all(not cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())
