"""Tasks of reasoning-gym: questions by seed, parts, mixtures, answers that are programs, wrong names."""

from __future__ import annotations

import copy
import sys

import cloudpickle
import pytest

import hunch
from hunch.core import UsageError
from hunch.envs import check, reasoning
from hunch.envs.reasoning import LONGEST, Question, only_computes, read_answer
from hunch.sandbox import Sandbox

pytest.importorskip("reasoning_gym", reason="needs the extra 'tasks'")


def answered(env, text, seed=0):
    env.reset(seed=seed)
    return env.step(text)


def test_a_task_keeps_the_contract():
    env = hunch.make("reasoning:gcd")
    check(env)
    question, info = env.reset(seed=3)
    assert "Greatest Common Divisor" in question
    assert info["free_text"]
    _, item = env.unwrapped.now
    _, reward, terminated, truncated, info = env.step(f" {item.answer}\n")
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert info["event"] == "gcd: score 1.00"
    assert answered(env, "none of your business", 3)[1] == 0
    assert env.reset(seed=3)[0] == hunch.make("reasoning:gcd").reset(seed=3)[0] == question
    fixed = {env.reset(seed=seed, options={"task_seed": 5})[0] for seed in range(4)}
    assert len(fixed) == 1


def test_a_copy_in_the_middle_of_an_episode():
    env = hunch.make("reasoning:chain_sum+gcd")
    env.reset(seed=1)
    twin = copy.deepcopy(env)
    answer = env.unwrapped.now[1].answer
    env.reset(seed=2)
    assert twin.step(answer)[1] == 1


def test_it_goes_to_another_process():
    env = hunch.make("reasoning:chain_sum+gcd?max_numbers=2", draw=3, questions=50)
    env.reset(seed=1)
    answer = env.unwrapped.now[1].answer
    sent = cloudpickle.loads(cloudpickle.dumps(env))
    assert sent.step(answer)[1] == 1
    assert sent.reset(seed=2)[0] == env.reset(seed=2)[0]
    assert sent.unwrapped.examples[:3] == env.unwrapped.examples[:3]


def test_no_question_is_in_both_parts():
    options = {"questions": 400, "demonstrations": 400}
    train, held_out, every = (
        dict(hunch.make("reasoning:coin_flip+gcd?max_value=30", part=part, **options).unwrapped.examples)
        for part in ("train", "held-out", "all")
    )
    assert not train.keys() & held_out.keys()
    assert min(len(train), len(held_out)) > 20
    assert every.keys() <= train.keys() | held_out.keys()
    for part, other in (("train", held_out), ("held-out", train)):
        env = hunch.make("reasoning:coin_flip+gcd?max_value=30", part=part, questions=400)
        for seed in range(30):
            question, _ = env.reset(seed=seed)
            assert question not in other
    drawn = hunch.make("reasoning:gcd", draw=1).unwrapped.examples[0]
    assert drawn != hunch.make("reasoning:gcd").unwrapped.examples[0]


def test_demonstrations_are_right_answers_of_all_tasks_in_turn():
    env = hunch.make("reasoning:gcd+spell_backward?max_word_len=5", demonstrations=7, answer="tags", ask="")
    examples = env.unwrapped.examples
    assert len(examples) == 7
    assert ["Divisor" in question for question, _ in examples] == [True, False] * 3 + [True]
    assert all(text.startswith("<answer>") for _, [text] in examples)
    seen = dict(examples)
    for seed in range(200):
        question, _ = env.reset(seed=seed)
        if question in seen:
            assert env.step(seen[question][0])[1] == 1
    assert len(hunch.make("reasoning:gcd", demonstrations=0).unwrapped.examples) == 0


def test_options_of_a_task():
    env = hunch.make("reasoning:chain_sum?min_terms=2&max_terms=2&min_digits=1&max_digits=1")
    question, _ = env.reset(seed=0)
    assert question.count("+") + question.count("- ") == 1
    assert question.endswith("\nAnswer with the result only.")
    bare = hunch.make("reasoning:chain_sum?min_terms=2&max_terms=2&min_digits=1&max_digits=1", ask="")
    assert question.startswith(bare.reset(seed=0)[0] + "\n")


@pytest.mark.parametrize(
    ("reading", "text", "answer"),
    [
        ("all", " 42 \n", "42"),
        ("last-line", "I think.\nSo it is:\n 42 \n\n", "42"),
        ("last-line", " \n", ""),
        ("tags", "<answer>1</answer> no, <answer> 42 </answer>.", "42"),
        ("tags", "42", ""),
        ("tags", "<answer>42", ""),
    ],
)
def test_where_an_answer_stands(reading, text, answer):
    assert read_answer(text, reading) == answer


@pytest.mark.parametrize("task", ["countdown", "string_insertion", "n_queens", "simple_integration"])
def test_answers_that_are_programs_run_nowhere_else(task, tmp_path):
    env = hunch.make(f"reasoning:{task}")
    env.reset(seed=0)
    right = env.unwrapped.now[1].answer
    assert env.step(right)[1] == 1
    file = tmp_path / "written"
    for attack in (
        f"__import__('pathlib').Path({str(file)!r}).write_text('x')",
        f"open({str(file)!r}, 'w')",
        f"(open)({str(file)!r}, 'w')",
        f"[open for _ in '1'][0]({str(file)!r}, 'w')",
        "exit()",
        "((",
    ):
        assert answered(env, attack)[1] < 0.1
        assert not file.exists()
    assert answered(env, right)[1] == 1  # the verifier works again


def test_what_computes_only():
    for text in (
        *("[1, 2, '3']", "sqrt(2)*x**2 + C", "3 * (94 - 1) / 7", "A, B", "-1.5e3"),
        *("-X**5/7 - X**3/2 + C", "X**10 + X**9", "sin(x)**2 + cos(x)**2", "(9 - x**2)**(3/2)"),
    ):
        assert only_computes(text), text
    for text in (
        "open('x')",
        "a.b",
        "__doc__",
        "(open)('x')",
        "open\\\n('x')",
        "open #\n('x')",
        "ｅｘｅｃ('1')",
        *("9**9**9", "9**(9 + 9**9)", "(9**9)**9", "sqrt(9**9)**9", "9**-9**9", "x**999", "x = 9**9**9"),
    ):
        assert not only_computes(text), text


@pytest.mark.parametrize("task", ["simple_integration", "polynomial_multiplication"])
def test_right_answers_are_asked_about(task):
    """A sum of powers was taken for a power of powers: a quarter of all right integrals scored 0."""
    made = hunch.make(f"reasoning:{task}").unwrapped.tasks[0]
    assert all(made.answers(made.question(number)) for number in range(100))


def test_demonstrations_leave_out_answers_that_are_not_scored(monkeypatch):
    """Some of intermediate_integration state an integral that was not computed."""
    env = hunch.make("reasoning:intermediate_integration", demonstrations=1).unwrapped
    [task] = env.tasks
    questions = [Question(str(n), answer, {}) for n, answer in enumerate((None, "3*Integral(x, x)", "x**2"))]
    monkeypatch.setattr(task, "question", questions.__getitem__)  # the tasks of a process are shared
    env.questions, env.part = len(questions), "all"
    assert env.examples[0][1] == ("x**2",)


def test_answers_at_which_a_verifier_fails_score_0(monkeypatch):
    assert answered(hunch.make("reasoning:prime_factorization"), "nonsense")[1] == 0
    assert answered(hunch.make("reasoning:pool_matrix"), "")[1] == 0
    assert answered(hunch.make("reasoning:gcd"), "1" * (LONGEST + 1))[1] == 0
    assert answered(hunch.make("reasoning:gcd"), "")[1] == 0
    box = Sandbox(seconds=2.0, modules=reasoning._MODULES)
    with box, box.load(reasoning._VERIFIER, "score", returns=float) as impatient:
        monkeypatch.setattr(reasoning, "_verifier", lambda: impatient)
        assert answered(hunch.make("reasoning:coin_flip"), "1e999999999")[1] == 0


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("reasoning:gdc", r"no task 'gdc'; did you mean 'gcd'\?"),
        ("reasoning:qwertz", "there are gcd, .* and 99 others"),
        ("reasoning:composite", "no task 'composite'"),
        ("reasoning:", "names nothing: say which, as in reasoning:gcd"),
        ("reasoning:gcd?max_number=3", "no option 'max_number'; did you mean 'max_numbers'"),
        ("reasoning:gcd?seed=3", "set by --env.draw"),
        ("reasoning:gcd?min_numbers=-3", "min_numbers must be at least 2"),
        ("reasoning:gcd?min_numbers", "should read"),
        ("reasoning:gcd+gcd?max_numbers=2", "named twice"),
        ("reasoning:gcd+", "no task"),
    ],
)
def test_wrong_names(id, said):
    with pytest.raises(UsageError, match=said) as error:
        hunch.make(id)
    assert "\n" not in str(error.value)


def test_an_empty_part_is_said():
    env = hunch.make("reasoning:gcd", part="held-out", held_out=0.0)
    with pytest.raises(UsageError, match="none is in the part 'held-out'"):
        env.reset(seed=0)
    with pytest.raises(UsageError, match="part"):
        hunch.make("reasoning:gcd", part="test")
    with pytest.raises(UsageError, match="answer"):
        hunch.make("reasoning:gcd", answer="first-line")


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(UsageError, match=r"need reasoning-gym: pip install .*\[tasks\]"):
        hunch.make("reasoning:gcd?max_value=77")


@pytest.mark.parametrize(
    "task", ["countdown", "fraction_simplification", "prime_factorization", "puzzle24", "rubiks_cube"]
)
def test_an_empty_answer_gets_nothing(task):
    """Some verifiers give it a little."""
    env = hunch.make(f"reasoning:{task}")
    for text in ("", "  \n"):
        env.reset(seed=1)
        assert env.step(text)[1] == 0
