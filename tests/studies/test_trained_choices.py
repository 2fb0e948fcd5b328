"""How well a policy's probabilities fit, and the questions on which that is measured."""

from __future__ import annotations

import numpy as np
import pytest

from hunch_studies.trained_choices import fit, questions


def test_the_fit_of_probabilities() -> None:
    probs = np.array([[0.95, 0.05], [0.95, 0.05], [0.35, 0.65], [0.35, 0.65]])
    row = fit(probs, np.array([0, 0, 1, 0]))
    assert row["right"] == 0.75
    assert row["sure"] == pytest.approx(0.8)
    assert row["calibration"] == pytest.approx(0.5 * 0.05 + 0.5 * 0.15)  # two bins of two questions
    assert row["brier"] == pytest.approx((2 * 2 * 0.05**2 + 2 * 0.35**2 + 2 * 0.65**2) / 4)


def test_held_out_questions_have_other_numbers() -> None:
    training, held_out = questions(0)
    kinds = [{frozenset(row["options"]) for row in rows} for rows in (training, held_out)]
    assert not kinds[0] & kinds[1]
    assert (len(kinds[0]), len(kinds[1])) == (len(training), len(held_out))
    assert all(row["answer"] == str(max(map(int, row["options"]))) for row in training)
