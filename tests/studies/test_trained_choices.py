"""How well a policy's probabilities fit, and the questions on which that is measured."""

from __future__ import annotations

import numpy as np
import pytest

from hunch_studies.trained_choices import KINDS, TRAINED, fit, questions


def test_the_fit_of_probabilities() -> None:
    probs = np.array([[0.95, 0.05], [0.95, 0.05], [0.35, 0.65], [0.35, 0.65]])
    row = fit(probs, np.eye(2)[[0, 0, 1, 0]])
    assert row["right"] == 0.75
    assert row["sure"] == pytest.approx(0.8)
    assert row["calibration"] == pytest.approx(0.5 * 0.05 + 0.5 * 0.15)  # two bins of two questions
    assert row["brier"] == pytest.approx((2 * 2 * 0.05**2 + 2 * 0.35**2 + 2 * 0.65**2) / 4)
    assert row["distance"] == pytest.approx((0.05 + 0.05 + 0.35 + 0.65) / 4)


def test_where_an_answer_is_drawn_the_shares_fit_best() -> None:
    shares = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])
    known = fit(shares, shares)
    sure = fit(np.eye(3)[[0, 1]], shares)
    assert known["calibration"] == pytest.approx(0)
    assert known["distance"] == 0
    assert known["right"] == sure["right"] == pytest.approx(0.65)
    assert sure["calibration"] == pytest.approx(0.35)
    assert sure["brier"] > known["brier"]
    # The expected Brier score is that of answers that were drawn.
    rng = np.random.default_rng(0)
    drawn = rng.choice(3, p=shares[0], size=40_000)
    errors = ((shares[0] - np.eye(3)[drawn]) ** 2).sum(axis=1)
    assert fit(shares[:1], shares[:1])["brier"] == pytest.approx(errors.mean(), abs=0.01)


@pytest.mark.parametrize("title", KINDS)
def test_held_out_questions_are_others(title: str) -> None:
    drawn = questions(KINDS[title].draw, 0)
    training, held_out = drawn[:TRAINED], drawn[TRAINED:]
    assert not {question.text for question in training} & {question.text for question in held_out}
    assert drawn == questions(KINDS[title].draw, 0)
    for question in drawn[:100]:
        assert question.answer in question.options
        assert sum(question.shares) == pytest.approx(1)
        assert question.shares[question.options.index(question.answer)] > 0
