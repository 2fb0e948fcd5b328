"""Rules of the studies in an audition: who knows the world has the right answers to the stored questions."""

from typing import NamedTuple

import pytest
from tests.audition.test_audition import answers_stored_questions, heard

from hunch.runs.compare import Arm
from hunch.runs.execute import RunConfig
from hunch_studies import audition as study


@pytest.mark.parametrize(
    ("role", "model", "least", "most"),
    [
        ("text-judge", "scripted:critic", 1.0, 1.0),
        ("text-judge", "scripted:critic?error=0.4", 0.7, 0.9),
        ("preference", "scripted:onlooker", 1.0, 1.0),
        ("preference", "scripted:onlooker?error=0.3", 0.6, 0.8),
        ("preference", "scripted:onlooker?error=1", 0.0, 0.0),
    ],
)
def test_stored_questions_have_right_answers(role, model, least, most):
    answers_stored_questions(role, model, least, most)


def test_a_rule_that_sees_is_heard_as_a_judge_of_pictures():
    assert heard("preference", "scripted:onlooker", n=20).has_score


def test_where_any_text_is_an_action_nothing_can_be_judged(hunch_command):
    code, _, errors = hunch_command("audition", "--lm", "uniform", "--env", "hunch/Recipes-v0")
    assert code == 2
    assert "accepts any text" in errors


class Job(NamedTuple):
    """A run, whose folder is its seed."""

    folder: int


def test_a_study_of_more_seeds_measures_its_pairs_anew(tmp_path, monkeypatch):
    said = {"ability": 0.5, "uninformed": 0.2, "words": 0.3, "lead": 0.3, "verdict": "pays", "answers": True}
    monkeypatch.setattr(study, "foretold", lambda env, models: dict.fromkeys(models, said))
    monkeypatch.setattr(study, "jobs", lambda arms, seeds, folder: [Job(seed) for seed in range(seeds)])
    monkeypatch.setattr(study, "finished", lambda seed: Job(seed))
    monkeypatch.setattr(study, "learning", lambda job: 0.5)
    monkeypatch.setitem(study.PLACES, "Ferry", ("minilm", study.WORDS))
    models = (study.UNINFORMED, "minilm", study.WORDS)
    arms = [Arm(study._label("zero-shot", m), RunConfig(method="zero-shot", env="x", lm=m)) for m in models]
    for seeds in (4, 8, 4):
        table = study.pairs("Ferry", arms, seeds, tmp_path / "ferry")
        assert table.count("minilm") == 1
    (row,) = study.measured(tmp_path)
    assert row["seeds"] == 8
