"""The study of recorded programs, on a small clone made here."""

import pytest

from hunch.core import UsageError
from hunch_studies.planbench_chance import PLANNERS
from hunch_studies.programs_genplan import chats, markdown, study

DOMAIN = """(define (domain lamps) (:predicates (lit ?x) (lamp ?x))
 (:action switch :parameters (?x) :precondition (lamp ?x) :effect (lit ?x)))"""
PROBLEM = """(define (problem p) (:domain lamps) (:objects A b) (:init (lamp A) (lamp b))
 (:goal (and (lit A) (lit b))))"""
FIRST = "def get_plan(objects, init, goal):\n    return ['switch ' + sorted(objects)[0]]\n"
BARE = "def get_plan(objects, init, goal):\n    return ['switch ' + x for x in objects]\n"
RIGHT = (
    "Sure:\n```python\ndef get_plan(objects, init, goal):\n    return [('switch', g[1]) for g in goal]\n```"
)


@pytest.fixture
def clone(tmp_path):
    def put(path, text):
        file = tmp_path / "llm_genplan" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    put("envs/assets/pddl/pg3/lamps.pddl", DOMAIN)
    for n in range(7):
        put(f"envs/assets/pddl/pg3/lamps_test/seed0/problem{n}.pddl", PROBLEM)
    for turn, text in (
        (0, "A domain of lamps."),
        (3, FIRST),
        (4, "def get_plan(o, i):\n  x"),
        (5, BARE),
        (6, RIGHT),
    ):
        put(f"llm_cache/pg3-lamps_0_chatgpt4/{turn}-response.txt", text)
    put("llm_cache/pg3-lamps_0_chatgpt3/3-response.txt", "I cannot do that.")
    put("llm_cache/pg3-other_0_chatgpt3/3-response.txt", RIGHT)
    put("llm_cache/pg3-stray", "a file, not a folder of answers")
    return tmp_path


def test_programs_are_run_again_and_counted(clone):
    found = study(clone)
    assert list(found) == [("lamps", name) for name in (*PLANNERS, "chatgpt3", "chatgpt4")]
    four = found["lamps", "chatgpt4"]
    assert (four.chats, four.programs, four.first, four.last) == (1, 4, 0.0, 1.0)
    assert four.crash == 0.25
    assert four.repair == pytest.approx(1 / 2)
    assert four.breaks == 0.0
    assert found["lamps", "chatgpt3"].crash == 1.0
    assert "| lamps | chatgpt4 | 1 | 4 | 0.00 | 0.00 | 1.00 | 0.25 | 0.50 | 0.00 |" in markdown(found)


def test_what_is_no_clone_is_refused(tmp_path):
    with pytest.raises(UsageError, match="not a clone"):
        chats(tmp_path)
