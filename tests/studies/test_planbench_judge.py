"""Verdicts on plans, in files of PlanBench's form that are made here."""

import dataclasses
import json

import pytest

from hunch.core import UsageError
from hunch_studies.planbench_judge import RULES, by_rule, markdown, read_verdict, stacks_last, verdicts

STATEMENT = """[STATEMENT]
As initial conditions I have that, the red block is clear, the hand is empty, the red block is on top of the \
blue block and the blue block is on the table.
My goal is to have that the blue block is clear.
My plan is as follows:

[PLAN]
{plan}
[PLAN END]

[VERIFICATION]
"""
GOOD = "unstack the red block from on top of the blue block\nput down the red block"
BAD = "pick up the blue block"


def write(folder, answers, **changes):
    path = folder / "results" / "blocksworld" / "model_chat" / "task_3_plan_verification.json"
    path.parent.mkdir(parents=True)
    example = STATEMENT.format(plan=BAD) + "The above plan is invalid.\n"
    instances = [
        {
            "instance_id": i,
            "query": example + STATEMENT.format(plan=plan),
            "llm_raw_response": said,
            **changes,
        }
        for i, (plan, said) in enumerate(answers)
    ]
    path.write_text(json.dumps({"instances": instances}))
    return folder


def test_rates_are_of_our_verifier(tmp_path):
    answers = [
        (GOOD, "The above plan is valid."),
        (GOOD, "The above plan is invalid. This is the unmet goal"),
        (BAD, "The above plan is valid."),
        (BAD, "The above plan is invalid."),
        (BAD, "I cannot say."),
    ]
    (found,) = verdicts(write(tmp_path, answers))
    assert found.says_yes(True).value == 0.5
    assert found.says_yes(False).value == pytest.approx(1 / 3)
    assert found.precision.value == 0.5
    assert found.unread == 1
    assert "| blocksworld | model_chat | 5 | 0.40 |" in markdown([found])


def test_a_judge_that_counts_actions(tmp_path):
    """It is scored on the plan in question, whatever the model said and the examples before it."""
    odd = f"{GOOD}\npick up the red block"  # valid, too
    even = f"{BAD}\nput down the blue block"
    answers = [(GOOD, "It is fine"), (odd, "The plan is valid"), (BAD, "It is fine"), (even, "It is fine")]
    (found,) = verdicts(write(tmp_path, [*answers, (BAD, "The plan is valid")]))
    counted = by_rule(found, "accepts plans of an even length")
    assert counted.pairs == ((True, True), (True, False), (False, False), (False, True), (False, False))
    assert counted.says_yes(True).value == 0.5
    assert counted.says_yes(False).value == pytest.approx(1 / 3)
    assert counted.unread == 0
    assert "| blocksworld | accepts plans of an even length | 5 | 0.40 |" in markdown([found])


def test_a_judge_that_reads_the_last_verb(tmp_path):
    onto = f"{GOOD}\npick up the red block\nstack the red block on top of the blue block"
    from_top = "unstack the red block from on top of the blue block"
    (found,) = verdicts(write(tmp_path, [(onto, ""), (GOOD, ""), (from_top, "")]))
    said = [accepted for _, accepted in by_rule(found, "accepts plans whose last action stacks").pairs]
    assert said == [True, False, False]
    assert not stacks_last([])


def test_controls_stand_once_beside_models_of_the_same_plans(tmp_path):
    found = verdicts(write(tmp_path, [(GOOD, "The plan is valid"), (BAD, "The plan is valid")]))
    table = markdown([*found, dataclasses.replace(found[0], model="another_chat")])
    assert table.count("model_chat") == table.count("another_chat") == 1
    assert [table.count(rule) for rule in RULES] == [1, 1]


@pytest.mark.parametrize(
    ("text", "verdict"), [("The plan is INVALID", False), ("This plan is valid", True), ("It is fine", None)]
)
def test_verdicts_are_read(text, verdict):
    assert read_verdict(text) is verdict


def test_files_of_another_kind(tmp_path):
    with pytest.raises(UsageError, match="no verdicts"):
        verdicts(tmp_path)
    with pytest.raises(UsageError, match="holds no plan"):
        verdicts(write(tmp_path, [(GOOD, "valid")], query="nothing"))
