"""The studies of Plan4MC and SPRING, on a few targets; and the plot of the skills' calibration."""

from dataclasses import replace

import pytest

from hunch.core import HunchWarning
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


def test_single_steps_leave_room_between_words_and_the_rule():
    manual, states = spring.drawn(0)
    assert len(states) == len(spring.TARGETS)
    assert [one.state.stream for one in states] == list(range(len(states)))
    assert "wooden pickaxe" in manual
    rows = {label: spring.asked_in(lm, "direct", 0) for label, lm in spring.CONTROLS.items()}
    assert sum(rows["rule"]["right"]) == len(states)
    assert sum(rows[spring.UNINFORMED]["right"]) < sum(rows[spring.WORDS]["right"]) < len(states) / 2
    graph = spring.asked_in(spring.RULE, "graph", 0)
    assert graph["checks"] == [[1] * len(spring.CHECKED)] * len(states)
    noisy = spring.asked_in(f"{spring.RULE}?error=1", "unchecked", 0)
    assert {tuple(checks[:3]) for checks in noisy["checks"]} == {(None, None, None)}, "they are not asked"
    assert sum(checks[4] for checks in noisy["checks"]) == 0
    vote = spring.asked_in(f"{spring.RULE}?error=0.3", "vote", 0, votes=9)
    assert sum(vote["right"]) > sum(vote["single"]), "a vote corrects errors that are drawn anew"


def test_the_blank_prompt_of_a_step_has_neither_manual_nor_task():
    with pytest.warns(HunchWarning, match="could not be used"):
        row = spring.asked_in(spring.RULE, "blank prompt", 0)
    assert sum(row["right"]) == 0, "the rule knows nothing without its manual"


def test_the_table_of_single_steps_pairs_states():
    rows = [
        {"key": [spring.WORDS, "direct", 0], "right": [0, 1], "named": [1, 1]},
        {"key": ["model", "direct", 0], "right": [1, 1], "named": [1, 1]},
        {
            "key": ["model", "graph", 0],
            "right": [0, 0],
            "named": [0, 1],
            "checks": [[1, 0] + [1] * 5] * 2,
            "copied": [1, 0],
        },
    ]
    told = spring.steps_table(rows)
    direct, graph = (line for line in told.splitlines() if line.startswith("| model |") and " 2 |" in line)
    assert direct.endswith("| 0.50 [-5.85, 6.85] |")
    assert "| 0.50 |" in graph
    assert "-1.00 [-1.00, -1.00]" in graph
    assert told.endswith("| worked 1.00 | 0.50 |")


def test_a_reliability_plot_is_drawn(tmp_path):
    bins = [Bin(0.02, 0.0, 40), Bin(0.5, 0.25, 8), Bin(0.97, 1.0, 100)]
    assert draw_reliability(bins, tmp_path / "plot.png", "A title").read_bytes().startswith(b"\x89PNG")
