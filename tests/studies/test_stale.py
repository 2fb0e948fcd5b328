"""The short runs that show whether a row of docs/systems.md is stale."""

from pathlib import Path

import pytest

from hunch.cli.main import main
from hunch.rl.tabular import QTable
from hunch_studies import stale

SYSTEMS = Path(__file__).parents[2] / "docs" / "systems.md"
QUICK = ["InstructRL", "Likelihood times value", "Kwon et al."]
VERDICTS = ("shown", "not shown", "cannot be shown here (")


def rows():
    """The cells of the table's rows, without headings of groups."""
    lines = [line.strip("| ").split(" | ") for line in SYSTEMS.read_text().splitlines() if line[:2] == "| "]
    return [cells for cells in lines if len(cells) == 10 and cells[0] != "system"]


def test_every_row_has_a_short_run_or_a_reason_why_not():
    names = [cells[0].partition(" (")[0] for cells in rows()]  # without the authors
    assert sorted(names) == sorted([*stale.SHORT, *stale.APART])
    assert stale.stored().keys() == stale.SHORT.keys()


def test_every_row_carries_seeds_pools_date_and_verdict():
    for cells in rows():
        system, _, _, _, _, seeds, pools, date, verdict, _ = cells
        assert any(letter.isdigit() for letter in seeds), system
        assert pools != "-", system
        assert "2026-" in date, system
        assert any(word in verdict for word in VERDICTS), system


def test_a_short_run_repeats(capsys):
    main(["study", "--stale", *QUICK])
    assert capsys.readouterr().out.splitlines() == [f"as stored: {row}" for row in QUICK]


def test_a_changed_method_is_stale(monkeypatch, capsys):
    """It no longer learns: the row that learns in a table is stale, and no other."""
    monkeypatch.setattr(QTable, "update", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="1"):
        main(["study", "--stale", "Kwon et al.", "Likelihood times value"])
    told = capsys.readouterr()
    assert told.out.splitlines() == ["stale: Kwon et al.", "as stored: Likelihood times value"]
    assert "1 of 2 rows are stale" in told.err


@pytest.mark.parametrize(
    ("row", "said"),
    [("GLAM", "no short run: 200 steps of"), ("Kwon et al", "no row 'Kwon et al'; did you mean")],
)
def test_a_row_without_a_run_is_refused(row, said, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["study", "--stale", row])
    assert said in capsys.readouterr().err


@pytest.mark.thorough
def test_no_row_is_stale():
    assert [row for row, differs in stale.stale(stale.SHORT) if differs] == []
