"""PlanBench's seventh task, in a file of its own form written here: states foretold, by hand."""

import gzip
import json

import pytest

from hunch.core import UsageError
from hunch_studies.planbench_execution import foretold, markdown, score
from hunch_studies.recordings.planbench import executions
from hunch_studies.recordings.statements import read_execution

START = (
    "As initial conditions I have that, the red block is clear, the yellow block is clear, the hand is "
    "empty, the red block is on top of the blue block, the yellow block is on top of the orange block, the "
    "blue block is on the table and the orange block is on the table."
)
EXAMPLE = (
    "[STATEMENT]\nAs initial conditions I have that, the red block is clear, the hand is empty and the red "
    "block is on the table.\n I have executed the following action sequence:\n\n[ACTION SEQUENCE]\npick up "
    "the red block\n[ACTION SEQUENCE END]\n[RESULTING STATE]\nthe hand is currently holding red block\n\n"
)
MOVES = "unstack the yellow block from on top of the orange block\nput down the yellow block\n"


def prompt(moves=MOVES):
    return (
        f"{EXAMPLE}[STATEMENT]\n{START}\n I have executed the following action sequence:\n\n"
        f"[ACTION SEQUENCE]\n{moves}[ACTION SEQUENCE END]\n[RESULTING STATE]\n"
    )


AFTER = ["clear_a", "clear_d", "clear_c", "handempty", "on_a_b", "ontable_b", "ontable_c", "ontable_d"]


def written(folder, *states, moves=MOVES):
    path = folder / "results" / "blocksworld" / "gpt-4_chat" / "task_7_plan_execution.json.gz"
    path.parent.mkdir(parents=True)
    records = [
        {"instance_id": i, "query": prompt(moves), "extracted_llm_plan": state}
        for i, state in enumerate(states)
    ]
    path.write_bytes(gzip.compress(json.dumps({"instances": records}).encode()))
    return folder


def test_the_last_statement_is_meant():
    statement, actions = read_execution(prompt())
    assert actions == [("unstack", "d", "c"), ("put-down", "d")]
    assert ("on", "d", "c") in statement.problem.init
    with pytest.raises(UsageError, match="no resulting state"):
        read_execution(START)


def test_states_are_scored_by_hand(tmp_path):
    half = ["clear_a", "on_a_b", "on_d_c", "holding_d"]
    (recording,) = executions(written(tmp_path, AFTER, half))
    found = list(foretold(recording))
    assert {"_".join(atom) for atom in found[0].true} == set(AFTER)
    scored = score(recording, found)
    assert scored.exact.value == 0.5
    assert scored.precision == (1 + 2 / 4) / 2
    assert scored.recall == (1 + 2 / 8) / 2
    assert scored.by_length == ((2, 0.5, 2),)
    assert recording.model == "gpt-4"


def test_the_table_has_the_control_beside_the_model(tmp_path):
    lines = markdown(written(tmp_path, AFTER)).splitlines()
    assert lines[2].startswith("| blocksworld | gpt-4 | 1 | 1.000")
    assert lines[3].startswith("| blocksworld | none: nothing changes | 1 | 0.000")
    assert "0.857 | 0.750" in lines[3], (
        "of seven facts six still hold, and of eight that hold six stood there"
    )


def test_bad_files_are_one_sentence(tmp_path):
    with pytest.raises(UsageError, match="task_7"):
        executions(tmp_path)
    (recording,) = executions(
        written(tmp_path, AFTER, moves="stack the red block on top of the yellow block\n")
    )
    with pytest.raises(UsageError, match="cannot be carried out"):
        list(foretold(recording))


def test_a_record_without_facts_is_refused(tmp_path):
    (recording,) = executions(written(tmp_path, None))
    with pytest.raises(UsageError, match="no list of facts"):
        list(foretold(recording))
