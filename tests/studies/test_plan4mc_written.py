"""Skill graphs that a model writes: how it is asked, what is right, and what their plans achieve."""

from dataclasses import replace
from pathlib import Path

import pytest

from hunch.lm.base import Model
from hunch.runs.files import read_lines
from hunch_contrib.planner.skill_graph import Entry, SkillGraph, read_entry
from hunch_studies import plan4mc, plan4mc_written
from hunch_studies.plan4mc_graphs import REQUESTS, agreement, fields_right, with_field, written
from hunch_studies.study import SMOKE
from hunch_studies.worlds.craft_skills import FINDINGS

EASY = ("collect wood", "make table", "make wooden pickaxe", "collect stone")


class Asked(Model):
    """Keeps the prompts that it is asked, and gives each the answer about the last example."""

    name = "asked"
    revision = "1"
    verbs = frozenset({"generate"})

    def __init__(self):
        self.prompts = []

    def generate(self, prompts, k=1, sampling=None, first=0):
        self.prompts += prompts
        return [["moves: yes"] * k for _ in prompts]


def test_of_each_field_is_counted_what_is_right_where_it_says_something_and_where_not():
    truth = SkillGraph(
        {
            "make torch": Entry(consumes=(("wood", 1), ("coal", 1)), obtains=(("torch", 1),)),
            "find trees": Entry(brings=("trees",), moves=True),
            "sleep": Entry(nearby=("a bed",)),
        }
    )
    other_order = Entry(consumes=(("coal", 1), ("wood", 1)), obtains=(("torch", 2),))
    graph = SkillGraph({"make torch": other_order, "find trees": Entry(brings=("trees",))})
    counted = agreement(graph, truth)
    assert counted["consumes"] == (1, 1, 1, 2), "sleep has no entry, so that nothing of it is right"
    assert counted["obtains"] == (0, 1, 1, 2)
    assert counted["brings"] == (1, 1, 1, 2)
    assert counted["moves"] == (0, 1, 1, 2)
    assert fields_right(graph, truth) == [5, 5, 0]
    lent = with_field(truth, graph, "obtains").entries
    assert lent["make torch"] == Entry(consumes=(("wood", 1), ("coal", 1)), obtains=(("torch", 2),))
    assert lent["sleep"] == truth.entries["sleep"]
    assert all(said == empty == 0 for said, _, empty, _ in agreement(SkillGraph({}), truth).values())


@pytest.mark.parametrize("request_name", REQUESTS)
def test_each_request_names_skill_and_manual_and_the_blank_prompt_has_no_manual(request_name):
    manual = plan4mc.craft_manual()
    prompts = {}
    for text in (manual, ""):
        lm = Asked()
        assert len(written(lm, text, ("make bed", "find sheep"), request_name).entries) == 2
        prompts[text] = lm.prompts
    first, second = prompts[manual]
    assert first.count("\nSkill: make bed\n") == second.count("\nSkill: find sheep\n") == 1
    assert [prompt.replace(manual, "") for prompt in prompts[manual]] == prompts[""]
    assert not any("wool" in prompt for prompt in prompts[""])


def test_the_examples_are_answers_as_they_are_read_and_from_another_world():
    text = Path(REQUESTS["examples"].prompt).read_text(encoding="utf-8")
    cake, pears, oven, find = (part.partition("\n\n")[0] for part in text.split("\nSkill: ")[1:5])
    assert read_entry(cake) == Entry(
        consumes=(("egg", 2), ("flour", 1)),
        requires=(("whisk", 1),),
        nearby=("an oven",),
        obtains=(("cake", 1),),
    )
    assert read_entry(pears) == Entry(nearby=("pear trees",), obtains=(("pear", 1),))
    assert read_entry(oven) == Entry(consumes=(("brick", 3),), brings=("an oven",))
    assert read_entry(find) == Entry(brings=("pear trees",), moves=True)
    names = plan4mc.skill_names(FINDINGS)
    assert not any(name in text for name in names)


def test_a_model_stands_beside_its_blank_prompt_and_the_controls(tmp_path, monkeypatch):
    monkeypatch.setattr(plan4mc, "TARGETS", EASY)
    monkeypatch.setattr(plan4mc_written, "TARGETS", EASY)
    scale = replace(SMOKE, seeds=3, share=0.1)
    specs = {"stand-in": "scripted:recipes"}
    labels = ["stand-in, plain", "stand-in, plain, blank prompt"]
    told = plan4mc_written.results(specs, tmp_path / "data", scale, tmp_path, labels)
    rows = {tuple(row["key"]): row for row in read_lines(tmp_path / "rows.jsonl")}
    assert rows["stand-in, plain",]["skills"] == len(EASY) + len(FINDINGS)
    assert rows["stand-in, plain, blank prompt",]["skills"] == 0
    assert rows["stand-in, plain", 2]["replanning"] == [1.0] * 4
    assert rows["nothing needed", 2]["replanning"] != [1.0] * 4
    beside = "| stand-in, plain | stand-in, plain, blank prompt | 1.00 [1.00, 1.00] |"
    assert beside in told
    assert rows["stand-in, plain", "consumes", 1]["lent"] == [1.0] * 4
    assert rows["word overlap", "requires", 1]["lent"] == [1.0, 1.0, 1.0, 0.0], "a stone takes a pickaxe"
    assert plan4mc_written.tables(list(rows.values())) == told
