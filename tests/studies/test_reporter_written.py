"""What a planner does with reports, asked after every transcript; and its examples of plans."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hunch import lm
from hunch.core import State
from hunch.methods.planner.examples import ExamplePrior, with_examples
from hunch.roles.prior.language import prompt
from hunch.roles.prior.similarity import SimilarityPrior
from hunch_studies import reporter, reporter_written
from hunch_studies.reporter_written import SILENT, errands, measured, planner, plans_of
from hunch_studies.study import SMOKE
from hunch_studies.worlds.secret import OTHERS, REPORTS, THINGS, VERBS, SecretProperty

SKILLS = tuple(f"{verb} the {thing}" for verb in VERBS for thing in THINGS)


@pytest.mark.parametrize(("question", "chance"), [("conditional", 0.5), ("search", 0.25)])
def test_a_rule_that_heeds_reports_gains_all_that_there_is(question, chance):
    row = measured("scripted:examiner", question, {})
    assert set(row["true"]) == {1.0}
    assert np.mean(row["random"]) == pytest.approx(chance)
    assert all(row["looks"])


def test_a_planner_that_picks_up_at_once_gains_nothing():
    row = measured("bag-of-words", "conditional", {})
    assert row["true"] == row["random"]
    assert row["transcripts"] == len(errands("conditional")) == 24


def test_a_silent_reporter_leaves_one_transcript_after_a_skill():
    both = plans_of(planner("scripted:examiner", "search", {}), "search")
    silent = plans_of(planner("scripted:examiner", "search", {"messages": SILENT}), "search")
    assert {one.told for one in silent if len(one.names) == 1} == {("", "")}
    assert {one.told for one in both if len(one.names) == 1} == {("", report) for report in REPORTS}


@pytest.mark.parametrize("question", ["conditional", "search"])
def test_examples_are_about_other_things_and_heed_the_reports(question):
    examples = SecretProperty(question=question).examples
    assert not set(OTHERS) & set(THINGS)
    for instruction, (*looks, last) in examples:
        assert not any(thing in instruction for thing in THINGS)
        thing, report = looks[-1].removeprefix("examine the ").split("\n")
        named = [other for other in OTHERS if other in instruction]
        assert last.removeprefix("pick up the ") in named
        if question == "conditional":
            first = report == "It is good."
            assert instruction.startswith(f"If the {thing} is good, ")
            assert f"{'' if first else 'otherwise '}{last}" in instruction
        else:
            assert (last == f"pick up the {thing}") == (report == "It is good.")


def test_a_model_reads_the_reports_of_the_examples():
    examples = SecretProperty().examples
    state = State("It is bad.", "the errand", SKILLS, (("", "examine the vase"),), raw=examples)
    read = prompt(with_examples(state, len(examples)), listed=False)
    assert read.count("> examine the ") == len(examples) + 1
    assert "> examine the cup\nIt is good.\n> pick up the pen\n" in read
    assert read.endswith("Instruction: the errand\n> examine the vase\nIt is bad.\n>")


def test_an_encoder_compares_only_with_examples_whose_skills_it_can_choose():
    words = lm.load("bag-of-words")
    state = State("", "pick up the ring", SKILLS, raw=SecretProperty().examples)
    (alone,) = SimilarityPrior(words, role="planner").probabilities([state])
    (shown,) = ExamplePrior(words).probabilities([state])
    assert shown.tolist() == alone.tolist()
    helps = ("get the ring", ("examine the vase\nIt is good.", "pick up the ring"))
    of_use = replace(state, task="get the ring", raw=(helps,))
    (helped,) = ExamplePrior(words).probabilities([of_use])
    assert SKILLS[int(np.argmax(helped))] == "examine the vase"

    # A state has the same prior whatever others are asked about with it.
    together = ExamplePrior(words).probabilities([state, of_use])
    assert [own.tolist() for own in together] == [alone.tolist(), helped.tolist()]


def test_planners_that_write_stand_beside_the_rule_and_their_controls(tmp_path):
    listed = reporter.written("search", ("scripted:kitchen",), tmp_path, SMOKE)
    labels = [arm.label for arm in listed]
    shares = {label: 0.5 + 0.1 * (label == "scripted:kitchen, trained reporter") for label in labels}
    found = {label: dict.fromkeys(range(3), share) for label, share in shares.items()}
    found["scripted:kitchen, untrained reporter"][7] = 0.0  # a seed that the others lack
    told = reporter.leads_of(found, ["scripted:examiner", "scripted:kitchen"])
    one = "scripted:kitchen, trained reporter"
    for other in ("scripted:kitchen, without instruction and reports", "uniform, scripted reporter, true"):
        assert f"| {one} | {other} | shown | 0.10 [0.10, 0.10] |" in told
    assert "| scripted:examiner, trained reporter | scripted:examiner, untrained reporter | not shown" in told
    settings = {arm.label: arm.at(0).options for arm in listed}
    assert settings[one].examples == settings[labels[-3]].examples == reporter_written.SHOWN
    assert settings[labels[-3]].uninstructed
    assert {own.longest for own in settings.values()} == {5}


def test_rows_are_shown_as_a_table(tmp_path):
    told = reporter_written.every_transcript((), tmp_path)
    assert "| conditional | rule | examiner | 1.00 | 1.00 | 0.50 | 0.50 [0.50, 0.50] | 72 |" in told
    assert told == reporter_written.every_transcript((), tmp_path)


def test_recorded_rows_are_shown_by_part(tmp_path):
    rows = [{"part": "A part", "key": [f"planner, {one}", seed], "success": 0.5 + 0.1 * seed}
            for one in reporter.REPORTERS for seed in range(3)]  # fmt: skip
    reached = {**measured("bag-of-words", "search", {}), "key": ["words", "similarity", "search"]}
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in [{"part": reporter.EVERY, **reached}, *rows]))
    told = reporter.recorded(file)
    assert "| search | words | similarity | 0.00 | 0.25 | 0.25 |" in told
    assert (
        "| planner, trained reporter | planner, untrained reporter | not shown | 0.00 [0.00, 0.00] |" in told
    )
