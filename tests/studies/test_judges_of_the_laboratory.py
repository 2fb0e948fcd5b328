"""Judges that stand beside a language model: one that knows words, and the arms of the study."""

import pytest

kwon = pytest.importorskip("hunch_studies.kwon")

from hunch.core import State, Transition, World  # noqa: E402
from hunch_studies.laboratory.worded import Worded  # noqa: E402


def ended(task, event, success):
    before, after = State("a game", task=task), State("the end", task=task)
    return Transition(before, "1", 0.0, after, True, False, success, event)


def test_words_pay_by_the_share_of_the_task_that_the_end_has():
    judge = Worded()
    judge.begin(World(), 0)
    steps = [
        ended("keep the red cup", "You keep the red cup.", True),
        ended("keep the red cup", "You drop a plate.", False),
        ended("keep the red cup", "You keep the plate.", False),
    ]
    assert judge.rewards(steps) == pytest.approx([1.0, 0.0, 0.5])
    assert set(judge.learn()) == {"judge_agrees"}
    assert judge.learn() == {}


def test_each_language_model_stands_beside_its_blank_prompt():
    lm = "replay:answers.jsonl.gz?model=qwen-coder-1.5b"
    labels = [arm.label for arm in kwon.arms("hunch/MatrixGame-v0", {}, 100, [lm, "smollm2?threads=1"])]
    assert labels[-5:] == [
        "judge by words",
        "qwen-coder-1.5b",
        "qwen-coder-1.5b, blank prompt",
        "smollm2",
        "smollm2, blank prompt",
    ]
    assert len(set(labels)) == len(labels)
    blank = kwon.arms("hunch/MatrixGame-v0", {}, 100, [lm])[-1].config.options.judge
    assert blank.objective == ""
