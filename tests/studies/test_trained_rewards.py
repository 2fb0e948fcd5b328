"""A reward model that chooses among texts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from hunch_studies.trained_rewards import FITTED, SHUFFLED, best_of, tabulated


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_best_of_n_is_the_mean_over_all_draws(n):
    rng = np.random.default_rng(0)
    by, of = rng.normal(size=(2, 4, 5))
    draws = [list(draw) for draw in combinations(range(5), n)]
    expected = np.mean([[of[row, draw][by[row, draw].argmax()] for draw in draws] for row in range(4)])
    assert best_of(n, by, of) == pytest.approx(expected)


def test_a_reward_model_that_is_gold_chooses_as_gold_does():
    gold = np.random.default_rng(0).normal(size=(10, 16))
    row = {"learned": gold.tolist(), "accuracy": 1.0}
    lines = tabulated(gold, {FITTED: [row] * 2, SHUFFLED: [row] * 2}).splitlines()
    best = next(line for line in lines if line.startswith("| 16"))
    cells = [cell.strip() for cell in best.strip("|").split("|")]
    assert cells[2].startswith(cells[4])
