"""Prompting: our questions, the kinds of play, questions and results of one's own, bad input."""

import json

import numpy as np
import pytest

import hunch
from hunch.core import UsageError
from hunch.runs.data import read_data
from hunch_studies.worlds.prompting import (
    CANDIDATES,
    TOPICS,
    Question,
    chance,
    edited,
    gap,
    questions,
    request,
)

BED = "hunch/Prompting-v0"


@pytest.fixture
def lines(tmp_path):
    def write(*rows):
        file = tmp_path / "rows.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(file)

    return write


def results(*rights):
    return [
        {"question": f"q{i}", "prompt": prompt, "right": right}
        for i, own in enumerate(rights)
        for prompt, right in zip(("think", "answer"), own, strict=True)
    ]


@pytest.mark.parametrize("play", ["write", "edit", "choose", "read"])
def test_the_contract(play):
    hunch.envs.check(hunch.make(BED, play=play))


def share(prompt, asked):
    return np.mean([chance(prompt.split(), own) > 0.5 if own.answer == "south" else 1.0 for own in asked])


def test_there_is_room_by_construction():
    """Of the questions whose answer is not the guess: one prompt serves three topics, a word one."""
    asked = [own for own in questions() if own.answer == "south"]
    firsts = [words[0] for words in TOPICS.values()]
    assert share(" ".join(firsts[:3]), asked) == pytest.approx(
        np.mean([not own.text.startswith("drum") for own in asked])
    )
    for own in asked:
        assert chance([TOPICS[own.text.split()[0]][0]], own) == 0.98
        assert chance([TOPICS[own.text.split()[0]][4]], own) < 0.5
    halves = questions()[::2], questions()[1::2]
    assert not {own.text for own in halves[0]} & {own.text for own in halves[1]}
    assert sorted(own.answer for own in halves[0]) == sorted(own.answer for own in halves[1])


def test_edits_by_hand():
    assert edited("a b c", "put d at 2") == "a d c"
    assert edited("a b c", "swap 1 and 3") == "c b a"
    assert edited("a b c", "stop") == "a b c"
    assert gap(np.array([0.7, 0.2, 0.1]), Question("", "b", ("a", "b", "c"))) == pytest.approx(-0.5)


def test_a_model_that_says_nothing_is_at_chance_and_is_counted():
    env = hunch.make(BED, measure="accuracy", count=0)
    env.reset(seed=0)
    assert env.step("feather")[1] == 0.5
    model = env.unwrapped.models["prompted"]
    assert model.usage.calls > 0
    assert hunch.make(BED).unwrapped.models["prompted"] is model


@pytest.mark.parametrize("measure", ["gap", "accuracy"])
def test_the_changes_of_edits_sum_to_the_last_score(measure):
    env = hunch.make(BED, play="edit", lm="pocket?corpus=walks", measure=measure).unwrapped
    _, info = env.reset(seed=3)
    assert env.score == env.scores(env.prompt)[measure == "accuracy"].mean()
    first, paid = env.score, 0.0
    for action in (info["actions"][5], info["actions"][30], "stop"):
        _, reward, over, _, _ = env.step(action)
        paid += reward
    assert over
    assert first + paid == pytest.approx(env.scores(env.prompt)[measure == "accuracy"].mean())


def test_ones_own_questions_are_split(lines):
    file = lines(*({"prompt": f"{i} + {i}", "answer": "even" if i % 2 else "odd"} for i in range(5)))
    seen = [
        {own.text for own in hunch.make(BED, file=file, split=split).unwrapped.questions}
        for split in ("training", "held out")
    ]
    assert (len(seen[0]), len(seen[1])) == (3, 2)
    assert not seen[0] & seen[1]


def test_recorded_results_are_the_rewards_and_the_data_of_the_training_questions(lines, tmp_path):
    file = lines(*results((1, 0), (0, 1), (1, 0)), {"question": "q0", "prompt": "think", "right": 0})
    env = hunch.make(BED, play="choose", file=file)
    _, info = env.reset(seed=0, options={"task_seed": 1})
    assert info["actions"] == ("think", "answer")
    assert env.unwrapped.models == {}
    for right, prompt in zip(env.unwrapped.asked[0].right.values(), info["actions"], strict=True):
        env.reset(seed=0, options={"task_seed": 1})
        assert env.step(prompt)[1] == right
    data = read_data(tmp_path / "rows.jsonl", BED, {})
    assert {own.observations[0] for own in data.episodes} == {"q0", "q2"}
    assert {own.rewards[0] for own in data.episodes} == {0.5, 0.0, 1.0}


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        ([{"prompt": "p", "answer": "yes"}] * 2, {}, "are equal: a prompt has nothing to change"),
        ([{"question": "q", "prompt": "p", "right": 1}] * 2, {"play": "choose"}, "one prompt only"),
        (results((1, 1), (1, 1)), {"play": "choose"}, "All results .* are equal"),
        ([{"prompt": "p", "right": 1}], {"play": "choose"}, "Line 1 .* has no question"),
        (results((1, 0), (0, 1)), {}, "set play to choose"),
        ([{"prompt": "p"}], {}, "Line 1 of .* has no answer or right"),
        ([{"prompt": "p", "answer": "a"}, {"prompt": "q"}], {}, "Line 2"),
        ([{"prompt": "p", "answer": "a"}, {"prompt": "q", "right": 1}], {}, "Line 2 .* has no answer"),
    ],
)
def test_bad_files_are_refused_in_a_sentence(rows, options, told, lines):
    with pytest.raises(UsageError, match=told):
        hunch.make(BED, file=lines(*rows), **options)


def test_the_form_says_what_the_model_reads(lines):
    file = lines({"prompt": "Dull {prompt}.", "answer": "bad"}, {"prompt": "q", "answer": "good"})
    env = hunch.make(BED, file=file, form="{question} {prompt}", way="likelihood", lm="pocket", count=0)
    env.reset(seed=0)
    inner = env.unwrapped
    # What stands in braces in a question stays as it is.
    assert request("It was", inner.asked[0].text, inner.form) == "Dull {prompt}. It was"
    assert request("", inner.asked[0].text, inner.form) == "Dull {prompt}."
    alone = inner.models["prompted"].score(["Dull {prompt}. It was"], [["bad", "good"]])[0].logprobs
    first, second = np.exp(alone) / np.exp(alone).sum()
    assert env.step("It was")[1] == pytest.approx(first - second)
    with pytest.raises(UsageError, match=r"form must contain \{question\}"):
        hunch.make(BED, form="{prompt}:")


def test_a_balanced_draw_pays_nothing_for_one_answer_to_everything(lines):
    rows = [{"prompt": f"q{i}", "answer": "good" if i % 6 < 4 else "bad"} for i in range(60)]
    env = hunch.make(BED, file=lines(*rows), balanced=True, count=8).unwrapped
    drawn = []
    for seed in range(5):
        env.reset(seed=seed)
        drawn += [own.text for own in env.asked]
        assert sorted(own.answer for own in env.asked) == ["bad"] * 4 + ["good"] * 4
    assert len(set(drawn)) > 8
    with pytest.raises(UsageError, match="multiple of 2"):
        hunch.make(BED, file=lines(*rows), balanced=True, count=7)


def test_a_balanced_draw_of_more_questions_than_there_are_is_balanced(lines):
    rows = [{"prompt": f"q{i}", "answer": "bad" if i < 4 else "good"} for i in range(24)]
    env = hunch.make(BED, file=lines(*rows), balanced=True, count=16).unwrapped
    env.reset(seed=0)
    assert sorted(own.answer for own in env.asked) == ["bad"] * 8 + ["good"] * 8
    with pytest.raises(UsageError, match="more of one answer than of another"):
        hunch.make(BED, file=lines(*rows), balanced=True, count=0)


@pytest.mark.parametrize("play", ["edit", "choose", "read"])
def test_one_question_cannot_be_balanced(play):
    with pytest.raises(UsageError, match=f"{play} draws one"):
        hunch.make(BED, play=play, balanced=True)


def test_lessons_have_the_form_in_which_is_asked():
    env = hunch.make(BED, play="read", form="{question} {prompt} ->").unwrapped
    env.reset(seed=0)
    lessons = [prompt for prompt, _ in env.examples]
    assert all(prompt.endswith("->") and " : " not in prompt for prompt in lessons)
    assert " ".join(env.asked[0].text.split()) in " | ".join(lessons)
    usual = hunch.make(BED, play="read").unwrapped.examples
    assert len(usual) == len(lessons)
    assert all(" : " in prompt for prompt, _ in usual)


def test_other_bad_input():
    with pytest.raises(UsageError, match="only one prompt"):
        hunch.make(BED, play="choose", prompts="think | think")
    assert hunch.make(BED, play="choose", prompts="a | b").reset(seed=0)[1]["actions"] == ("a", "b")
    assert hunch.make(BED, play="choose").reset(seed=0)[1]["actions"] == CANDIDATES


def test_a_prompt_that_leaves_no_room_is_refused():
    env = hunch.make(BED, lm="pocket")
    env.reset(seed=0)
    with pytest.raises(UsageError, match="tokens, and pocket reads"):
        env.step("word " * 5_000)
