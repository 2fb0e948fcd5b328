"""Rules of the studies in an audition: who knows the world has the right answers to the stored questions."""

import pytest
from tests.audition.test_audition import answers_stored_questions, heard


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
