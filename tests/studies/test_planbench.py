"""PlanBench's files, written here in their own form, and what the study makes of them."""

import gzip
import json

import numpy as np
import pytest

from hunch.core import UsageError
from hunch.rl.statistics import Estimate
from hunch_studies.planbench import best_of_k, renamed, study, valid
from hunch_studies.planbench_bandit import bandit
from hunch_studies.planbench_chance import PLANNERS
from hunch_studies.planbench_page import markdown
from hunch_studies.recordings.planbench import recordings, repaired
from hunch_studies.recordings.statements import read_statement
from hunch_studies.worlds.strips import problems
from hunch_studies.worlds.strips.pddl import read
from hunch_studies.worlds.strips.task import Task
from hunch_studies.worlds.strips.wording import BLOCKS, FREIGHT, MYSTERY_BLOCKS, MYSTERY_FREIGHT

START = (
    "As initial conditions I have that, the red block is clear, the yellow block is clear, the hand is "
    "empty, the red block is on top of the blue block, the yellow block is on top of the orange block, the "
    "blue block is on the table and the orange block is on the table."
)
GOAL = "My goal is to have that the orange block is on top of the red block."
PROMPT = f"I am playing with a set of blocks.\n\n[STATEMENT]\n{START}\n{GOAL}\n\nWhat is the plan?"
MYSTERY = (
    "[STATEMENT]\nAs initial conditions I have that, object a craves object b, object d craves object c, "
    "harmony, planet object b, planet object c, province object a and province object d.\nMy goal is to have "
    "that object c craves object a.\n\nMy plan is as follows:\n\n[PLAN]"
)
PLAN = "(unstack d c)\n(put-down d)\n(pick-up c)\n(stack c a)\n"
ATOMS = [("unstack", "d", "c"), ("put-down", "d"), ("pick-up", "c"), ("stack", "c", "a")]
SPOKEN = (
    "Sorry. Here is the plan:\n\n[PLAN]\n1. **Unstack the yellow block from the orange block.**\n"
    "2. Put down the yellow block on the table.\n   - Now the hand is empty.\n3. Pick up the orange block.\n"
    "4. stack the orange block on top of the red block\n[PLAN END]\nThat should do."
)


def write(path, data, zipped=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = data if isinstance(data, str) else json.dumps(data)
    if zipped:
        path.with_suffix(".json.gz").write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def answer(number, plan, prompt=PROMPT, text="said", **others):
    return {
        **{"instance_id": number, "query": prompt, "llm_raw_response": text, "ground_truth_plan": PLAN},
        **{"extracted_llm_plan": plan, "llm_correct": True, **others},
    }


ZERO, ONE = "task_1_plan_generation_zero_shot.json", "task_1_plan_generation.json"
WRONG = "(unstack a b)\n"


@pytest.fixture
def repository(tmp_path):
    """A small clone of the repository: three models, other names, a repair."""
    root = tmp_path / "llm_planning_analysis" / "results"
    lines = PLAN.splitlines()
    plans = {
        "gpt-4_chat": [PLAN, WRONG, lines, ""],
        "llama-3_groq": [WRONG, PLAN, WRONG, WRONG],
        "o9": [PLAN.upper(), PLAN + "; cost = 4 (unit cost)", None, WRONG],
    }
    for model, given in plans.items():
        answers = [answer(i, plan) for i, plan in enumerate(given, 1)]
        write(root / "blocksworld" / model / ZERO, {"instances": answers}, zipped=model == "o9")
    hidden = PLAN
    for plain, other in MYSTERY_BLOCKS.symbols.items():
        hidden = hidden.replace(f"({plain} ", f"({other} ")
    mystery = [answer(1, hidden, MYSTERY, ground_truth_plan=hidden), answer(2, WRONG, MYSTERY)]
    write(root / "mystery_blocksworld" / "gpt-4_chat" / ZERO, {"instances": mystery})
    messages = [
        {"role": "system", "content": "You plan."},
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": "unstack the red block from on top of the blue block\n[PLAN END]"},
        {"role": "user", "content": "The above plan is invalid."},
        {"role": "assistant", "content": SPOKEN},
    ]
    repair = {"instance_id": 1, "messages": messages, "steps": 2, "correct": True}
    steps = {"1": {"llm_plan": PLAN}, "0": {"llm_plan": "stack"}}
    in_pddl = {"instance_id": 2, "messages": [messages[1]], "step_wise_dict": steps}
    name = "task_1_plan_generation_backprompting.json"
    write(root / "blocksworld" / "gpt-4_chat" / name, {"instances": [repair, in_pddl]})
    return tmp_path


def by_key(rows):
    return {row.recording.key: row for row in rows}


def test_a_prompt_in_words_is_read():
    statement = read_statement(PROMPT)
    assert statement.problem.goal.positive == (("on", "c", "a"),)
    assert ("on", "d", "c") in statement.problem.init
    assert ("handempty",) in statement.problem.init
    assert len(statement.problem.init) == 7
    assert statement.plan(PLAN) == ATOMS
    assert statement.plan(["(unstack yellow orange)", "(put-down yellow)"]) == ATOMS[:2]
    assert statement.plan_in_words(SPOKEN) == ATOMS


def test_other_names_are_the_same_problem():
    plain, mystery = read_statement(PROMPT), read_statement(MYSTERY)
    assert plain.problem == mystery.problem
    assert mystery.plan("(feast d c)(succumb d)(attack c)(overcome c a)") == ATOMS
    spoken = "Feast object d from object c\nSuccumb object d\nAttack c\nOvercome object c from object a"
    assert mystery.plan_in_words(spoken) == ATOMS


@pytest.mark.parametrize("wording", [BLOCKS, MYSTERY_BLOCKS, FREIGHT, MYSTERY_FREIGHT])
def test_what_our_words_tell_is_read_back(wording):
    rng = np.random.default_rng(0)
    for _ in range(20):
        if "at" in wording.predicates:
            problem = problems.logistics(rng, 2, 3, 3, 2, anonymous=wording is MYSTERY_FREIGHT)
        else:
            problem = problems.blocksworld(rng, 6)
        init, goal = wording.facts(problem.init), wording.goal(problem.goal)
        statement = read_statement(
            f"As initial conditions I have that, {init}.\nMy goal is to have that {goal}."
        )
        assert statement.problem.init == problem.init
        assert set(statement.problem.goal.positive) == set(problem.goal.positive)
        operators = Task(problem).ground.operators
        plan = [operators[i].atom for i in rng.integers(len(operators), size=8)]
        assert statement.plan_in_words("\n".join(map(wording.action, plan))) == plan


def test_a_prompt_in_pddl_is_read():
    domain, problem = (read(problems.FOLDER / f"{name}.pddl") for name in ("blocksworld", "sussman"))
    prompt = (
        f"Under the heading [DOMAIN] is the domain, under [QUERY PROBLEM] the problem.\n[DOMAIN]\n{domain}\n"
        f"[PROBLEM]\n(define (problem other))\n[QUERY PROBLEM]\n{problem})\n\n[PLAN]"
    )
    statement = read_statement(prompt)
    assert statement.problem.name == "sussman"
    assert not valid(statement, [("unstack", "c", "a")])
    assert statement.plan("```\n(UNSTACK c a)\n```") == [("unstack", "c", "a")]


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Hello", "no initial conditions"),
        (PROMPT.replace("is clear", "is blue"), "unknown wording"),
        ("[DOMAIN]\nnone\n[QUERY PROBLEM]\n(define", "PDDL"),
    ],
)
def test_a_prompt_that_cannot_be_read_says_so(prompt, said):
    with pytest.raises(UsageError, match=said):
        read_statement(prompt)


def test_success_is_recomputed(repository):
    rows = by_key(study(repository).scores)
    rates = {
        key[1]: (row.n, row.answered, row.success.value) for key, row in rows.items() if key[0][0] == "b"
    }
    chance = [rates.pop(name) for name in PLANNERS]
    assert rates == {"gpt-4": (4, 4, 0.5), "llama-3": (4, 4, 0.25), "o9": (4, 4, 0.5)}
    assert [n for n, *_ in chance] == [4, 4]
    row = rows["mystery_blocksworld", "gpt-4", "zero-shot"]
    assert (row.n, row.success.value, row.wrong_truths) == (2, 0.5, 1)
    assert 0 < row.success.low < 0.5 < row.success.high < 1


def test_the_month_is_told_where_the_file_has_it(repository):
    answers = [answer(i, PLAN, response_object={"created": t}) for i, t in ((1, 1737860106), (2, 1727755846))]
    write(repository / "results" / "blocksworld" / "new" / ONE, {"instances": [*answers, answer(3, PLAN)]})
    row = by_key(study(repository).scores)["blocksworld", "new", "one-shot"]
    assert row.months == "2024-10 to 2025-01"


def test_best_of_k_is_exact():
    table = {
        "a": {1: True, 2: False, 3: False, 9: True},
        "b": {1: True, 2: True, 3: False},
        "c": {1: False, 2: False, 3: False, 8: True},
    }
    rows = best_of_k(table)
    assert [row.random.value for row in rows] == pytest.approx([3 / 9, (1 + 2 / 3) / 3, 2 / 3])
    assert [row.greedy for row in rows] == pytest.approx([2 / 3] * 3)
    assert rows[0].added == "b"
    with pytest.raises(UsageError, match="no problem in common"):
        best_of_k({"a": {1: True}, "b": {2: True}})


def test_other_words_are_compared_problem_by_problem():
    tables = {
        ("blocksworld_3", "zero-shot"): {"a": {1: True, 2: True, 3: False}, "b": {1: True}},
        ("mystery_blocksworld_3", "zero-shot"): {"a": {1: False, 2: True}, "c": {1: True}},
    }
    (row,) = renamed(tables)
    assert (row.model, row.n, row.plain, row.other, row.lost.value) == ("a", 2, 1.0, 0.5, 0.5)


def test_the_bandit_learns_whom_to_ask():
    n = 300
    table = {
        "good": {i: i % 10 > 0 for i in range(n)},
        "poor": {i: i % 10 == 0 for i in range(n)},
        "dear": dict.fromkeys(range(n), True),
    }
    rows = {row.name: row for row in bandit(table, {"good": 1, "poor": 1, "dear": 10}, trade=0.5, orders=10)}
    best = rows["best in hindsight: good"]
    assert (best.success, best.cost) == pytest.approx((0.9, 0.1))
    assert rows["a planner at random"].worth.high < rows["Thompson sampling"].worth.low
    assert rows["Thompson sampling"].worth.high < best.worth.value
    in_turn = rows["cheapest first until valid"]
    assert (in_turn.success, in_turn.cost) == pytest.approx((1.0, 0.1 + 0.1 * 0.1))


def test_repair_counts_rounds(repository):
    (row,) = study(repository).repaired
    assert row.by_round == (0.0, 1.0)
    assert isinstance(row.last, Estimate)


def test_repairs_after_other_feedback_are_rows_of_their_own(repository):
    name = "task_1_plan_generation_backprompting_zero_shot_feedback_type_1_tv0.0_tg1.0.json"
    write(repository / "results" / "blocksworld" / "gpt-4_chat" / name, {"instances": []})
    kinds = {found.prompt for found in repaired(repository)}
    assert kinds == {"in words", "zero shot feedback type 1 tv0"}


def test_the_page_has_a_row_for_each(repository):
    page = markdown(study(repository))
    assert "| blocksworld | gpt-4 | zero-shot | not said | 4 | 4 | 0.500 [0.150, 0.850] | 0 |" in page
    assert "Best of k planners: blocksworld, zero-shot" in page
    assert "Left out" not in page


def test_prices_are_taken(repository):
    prices = {"gpt-4": 3.0, "llama-3": 1.0, "o9": 2.0}
    rows = study(repository, prices=prices, trade=0.0).policies["blocksworld", "zero-shot"]
    assert {row.name: row.cost for row in rows}["cheapest first until valid"] == pytest.approx(
        (1 + 1 + 1 + 1) / 12 + (2 + 0 + 2 + 2) / 12 + (0 + 0 + 3 + 3) / 12
    )
    with pytest.raises(UsageError, match="no price above 0 for llama-3"):
        study(repository, prices={"gpt-4": 1.0, "o9": 1.0})


def test_the_first_of_two_copies_is_read(repository):
    again = repository / "plan-bench" / "results" / "blocksworld" / "gpt-4_chat" / ZERO
    write(again, {"instances": [answer(1, WRONG)]})
    assert by_key(study(repository).scores)["blocksworld", "gpt-4", "zero-shot"].n == 4


def test_a_file_that_names_its_model_itself(repository):
    path = repository / "results" / "sokoban" / "task_1_plan_generation_zero_shot_pddl.json"
    write(path, {"engine": "llama_aws", "instances": []})
    assert ("sokoban", "llama", "zero-shot PDDL") in {found.key for found in recordings(repository)}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "damaged"),
        ("[]", "no list of instances"),
        ('{"instances": [1]}', "no list of instances"),
        ('{"instances": [{"id": 1}]}', "instance_id"),
        ('{"instances": [{"instance_id": 1}]}', "problem 1 has no prompt"),
        (json.dumps({"instances": [answer(3, 7)]}), "neither text nor lines"),
        (
            json.dumps({"instances": [answer(3, None, text="") | {"llm_raw_response": None}]}),
            "answered nothing",
        ),
    ],
)
def test_files_that_cannot_be_used_are_left_out_with_the_reason(repository, content, said):
    write(repository / "results" / "blocksworld" / "new" / ONE, content)
    (line,) = study(repository).left_out
    assert said in line
    assert "new" in line


def test_a_damaged_archive_is_left_out(repository):
    path = repository / "results" / "blocksworld" / "new" / f"{ONE}.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(b"{}" * 100)[:20])
    assert "damaged" in study(repository).left_out[0]


def test_repairs_that_cannot_be_used_are_left_out(repository):
    path = repository / "results" / "blocksworld" / "new" / "task_1_plan_generation_backprompting.json"
    write(path, {"instances": [{"instance_id": 5, "messages": "none"}]})
    assert "problem 5 has no list of messages" in study(repository).left_out[0]


def test_a_folder_without_results_says_what_is_looked_for(tmp_path):
    for search in (recordings, repaired):
        with pytest.raises(UsageError, match="LLMs-Planning"):
            search(tmp_path)
        with pytest.raises(UsageError, match="no folder"):
            search(tmp_path / "none")


def test_an_unsolvable_problem_is_answered_by_saying_so(tmp_path):
    said = "No plan can do that: the goal is a cycle."
    answers = [
        answer(1, "", text=said),
        answer(2, PLAN, text=said),
        answer(3, "", text=""),
        answer(4, "", text="Here is the plan:"),
    ]
    write(tmp_path / "results" / "unsolvable_blocksworld" / "m" / ZERO, {"instances": answers})
    (row,) = study(tmp_path).scores
    assert row.success.value == 0.25
