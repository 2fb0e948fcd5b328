"""The studies of Plan4MC and SPRING, on a few targets; and the plot of the skills' calibration."""

from dataclasses import replace

import pytest

from hunch.rl.calibration import Bin
from hunch_studies import plan4mc, saycan, spring
from hunch_studies.plan4mc_graphs import by_words
from hunch_studies.planners import Played
from hunch_studies.reliability import draw_reliability
from hunch_studies.study import SMOKE
from hunch_studies.worlds.craft_skills import FINDINGS

EASY = ("collect wood", "make table")


def cells(table, line):
    """The cells of a line of a table in Markdown."""
    (row,) = [row for row in table.splitlines() if row.startswith(f"| {line} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_a_lead_in_few_instructions_is_sure_over_seeds_and_unsure_over_instructions():
    """Two of ten instructions are won in every episode, the others never, by every seed."""

    def runs(won):
        return [[Played(f"errand {i}", i < won, True, 1, 1) for i in range(10)] for _ in range(5)]

    seeds, instructions = saycan.ahead(runs(2), runs(0))
    assert seeds.value == instructions.value == pytest.approx(0.2)
    assert seeds.low == pytest.approx(0.2)
    assert instructions.low < 0


def test_plan4mc_on_two_targets(tmp_path, monkeypatch):
    monkeypatch.setattr(plan4mc, "TARGETS", EASY)
    monkeypatch.setattr(plan4mc, "FAILURES", (0.0, 0.3))
    scale = replace(SMOKE, share=0.1)  # 500 steps of training, two episodes a target
    table = plan4mc.failing((), tmp_path / "data", scale, tmp_path / "failing")
    assert cells(table, "planning anew after each skill")[2].startswith("1.00")
    assert cells(table, "flat Q-learning, 500 steps")[1] == "-"
    found = plan4mc.unfound(tmp_path / "data", scale, tmp_path / "unfound")
    assert cells(found, "trained skills to find things")[1].startswith("1.00")
    assert float(cells(found, "none, and the graph knows")[2]) > 0.4  # said before anything was tried
    said = plan4mc.wrong(tmp_path / "data", scale, tmp_path / "wrong")
    assert len(cells(said, "16")) == 5


def test_word_overlap_writes_most_of_the_graph():
    """It errs only where a skill is named after what it uses."""
    names = plan4mc.skill_names(FINDINGS)
    written, read = by_words(plan4mc.craft_manual(), names).entries, plan4mc.right(FINDINGS).entries
    short = {name for name in names if not {*read[name].nearby} <= {*written[name].nearby}}
    assert not short
    lacks = {name for name in names if {*read[name].consumes} - {*written[name].consumes}}
    assert lacks == {"plant sapling", "place torch"}


def test_spring_on_two_targets(tmp_path, monkeypatch):
    monkeypatch.setattr(spring, "TARGETS", EASY)
    monkeypatch.setattr(spring, "ERRORS", (0.0,))
    told = spring.by_error(SMOKE, tmp_path / "errors")
    success, ahead, right = (part for part in told.split("\n\n") if part.startswith("|"))
    for line in spring.LINES:
        assert cells(success, line)[1].startswith("1.00")
        assert cells(right, line)[1] == "1.00"
    assert cells(ahead, "direct")[1].startswith("0.00")


def test_a_reliability_plot_is_drawn(tmp_path):
    bins = [Bin(0.02, 0.0, 40), Bin(0.5, 0.25, 8), Bin(0.97, 1.0, 100)]
    assert draw_reliability(bins, tmp_path / "plot.png", "A title").read_bytes().startswith(b"\x89PNG")
