"""Prompts for snippets of film reviews: the questions, the rows, and GEPA."""

from dataclasses import replace

import numpy as np
import pytest

from hunch import methods
from hunch.runs.execute import RunConfig, execute
from hunch.runs.files import read_lines, sealed_json
from hunch_contrib.prompt.rlprompt import RLPromptConfig
from hunch_studies.film_prompts import (
    BEST_BY_HAND,
    BY_HAND,
    NO_PROMPT,
    RANDOM,
    STUDIES,
    by_hand,
    judged,
    luck,
    options,
    table,
)
from hunch_studies.film_snippets import ANSWERS, QUESTIONS, frequent
from hunch_studies.study import Scale, conduct
from hunch_studies.worlds.prompting import Prompting, read_questions


def test_both_halves_have_as_many_of_either_answer_and_share_nothing():
    every = read_questions(str(QUESTIONS))
    halves = every[::2], every[1::2]
    for half in halves:
        assert len(half) == 300
        assert {sum(own.answer == answer for own in half) for answer in ANSWERS} == {150}
    assert not {own.text for own in halves[0]} & {own.text for own in halves[1]}


def test_words_of_prompts_come_from_the_training_half():
    words = frequent(100)
    assert len(set(words)) == 100
    assert words[0] == "the"
    training = " ".join(own.text.lower() for own in read_questions(str(QUESTIONS))[::2]).split()
    assert set(words) <= set(training)


def test_every_arm_can_be_configured(tmp_path):
    parts = STUDIES["film-prompts"].parts(Scale(seeds=1, share=0.05), tmp_path)
    assert [part.arms[0].config.env_options.get("balanced", False) for part in parts] == [True, False]
    for arm in (arm for part in parts for arm in part.arms):
        methods.settings.configure(methods.find(arm.config.method).agent_class, arm.config.options, {})
        assert arm.config.env_options["count"] * 100 == 1_600  # question scores of a run
    assert len(set(BY_HAND)) == len(BY_HAND) == 12


def test_a_prompt_is_judged_on_what_is_held_out():
    pytest.importorskip("hunch_pocket")
    row = judged("pocket", "It was")
    env = Prompting(**{**options("pocket"), "split": "held out"})
    assert len(row["right"]) == len(env.questions) == 300
    assert row["accuracy"] == pytest.approx(np.mean([digit == "1" for digit in row["right"]]))
    env.asked = env.questions[:20]
    assert row["right"][:20] == "".join("01"[int(one)] for one in env.scores("It was")[1])


def test_prompts_by_hand_are_compared_on_as_many_questions_of_either_answer(monkeypatch):
    asked = []
    scores = Prompting.scores

    def noted(env, prompt):
        asked.append([own.answer for own in env.asked])
        return scores(env, prompt)

    monkeypatch.setattr(Prompting, "scores", noted)
    assert by_hand("uniform", 0) in BY_HAND
    assert len(asked) == len(BY_HAND)
    assert all(answers == asked[0] for answers in asked)
    assert asked[0].count("great") == asked[0].count("terrible") == 66  # 12 prompts: 1,584 of 1,600 calls


def test_luck_is_the_share_of_one_answer_where_a_model_gives_it_always(tmp_path):
    """With answers that say nothing of the question, the score is made of the draw alone."""
    own = {**options("uniform", balanced=False), "lm": "uniform"}
    run = RunConfig(method="rlprompt", env="hunch/Prompting-v0", env_options=own, steps=20)
    execute(replace(run, options=RLPromptConfig(length=5, search="random")), tmp_path / "run")
    rows = [row for row in read_lines(tmp_path / "run" / "episodes.jsonl") if not row["evaluation"]]
    env = Prompting(**own)
    shares = []
    for row in rows:
        env.reset(seed=row["seed"])
        shares.append(np.mean([each.answer == "great" for each in env.asked]))
    paid = "".join(
        sealed_json({**row, "return": share}).decode() for row, share in zip(rows, shares, strict=True)
    )
    (tmp_path / "run" / "episodes.jsonl").write_text(paid)
    assert luck(tmp_path / "run") == pytest.approx(1.0)


def test_the_page_of_chosen_arms_has_their_table(tmp_path):
    scale = Scale(seeds=1, share=0.05, lms=("uniform",), parts=("Random draws",), arms=(RANDOM,))
    study = STUDIES["film-prompts"]
    page = conduct(study, tmp_path, scale, workers=1, watch=lambda part, todo: lambda lines: None).read_text()
    [row] = [line for line in page.splitlines() if line.startswith(f"| {RANDOM} ")]
    assert "| 1 | 0.500 |" in row  # a model that says nothing
    assert BEST_BY_HAND not in page


def test_the_table_pairs_by_seed():
    rows = [
        {"key": [arm, seed], "prompt": "p", "accuracy": score, "gap": 0.0, "great": 0.5}
        for arm, scores in {RANDOM: (0.5, 0.7), BEST_BY_HAND: (0.6, 0.8), NO_PROMPT: (0.6,)}.items()
        for seed, score in enumerate(scores)
    ]
    lines = {line.split(" | ")[0].strip("| "): line for line in table(rows).splitlines()}
    assert "0.10 [0.10, 0.10]" in lines[BEST_BY_HAND]
    assert "0.600 [0.500, 0.700]" in lines[RANDOM]
    assert lines[NO_PROMPT].split(" | ")[2:5] == ["0.600", "0.50", ""], "no lead over one seed's search"


def test_gepa_stays_within_its_calls_and_ends_with_a_prompt():
    pytest.importorskip("gepa")
    pytest.importorskip("hunch_pocket")
    from hunch_studies.film_gepa import VALIDATION, prompt_by_gepa

    env = Prompting(**options("pocket"))
    found = prompt_by_gepa(env, "pocket", calls=80, seed=0)
    assert isinstance(found["prompt"], str)
    # The round that is under way at the limit is finished: two scores of four, and those of validation.
    assert found["asked"] <= 80 + 8 + VALIDATION
    assert found["written"] >= 1
