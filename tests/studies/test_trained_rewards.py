"""A reward model that chooses among texts."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest

from hunch.core import UsageError
from hunch.runs.execute import execute
from hunch_studies import trained_rewards
from hunch_studies.study import Scale
from hunch_studies.trained_rewards import (
    FITTED,
    SHUFFLED,
    UNTRAINED,
    best_of,
    by_words,
    correlation,
    tabulated,
    words_reward,
)

TINY = "scratch?width=16&layers=1&vocabulary=64"


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
    lines = tabulated(gold, {FITTED: {"0": row, "1": row}, SHUFFLED: {"1": row}}).splitlines()
    best = next(line for line in lines if line.startswith("| 16"))
    cells = [cell.strip() for cell in best.strip("|").split("|")]
    assert cells[2].startswith(cells[4])
    shuffled = next(line for line in lines if line.startswith(f"| {SHUFFLED}"))
    assert shuffled.strip("| ").endswith("0.00")


def test_rewards_are_collected_from_finished_runs(tmp_path, monkeypatch):
    pytest.importorskip("vaderSentiment")
    pytest.importorskip("transformers")
    part = trained_rewards.selection("Reviews", "hunch/Reviews-v0", TINY, Scale(seeds=1, share=0.02))
    for arm in part.arms:
        if arm.label in (FITTED, UNTRAINED):
            execute(arm.at(0), tmp_path / arm.folder / "seed-0")
    file = tmp_path / "rewards.json"
    with pytest.raises(UsageError, match="no finished run of 'untrained'"):
        trained_rewards.collect(tmp_path / "elsewhere", file)
    trained_rewards.collect(tmp_path, file, requests=4)
    first = file.read_bytes()
    monkeypatch.setattr(trained_rewards, "_texts_of", None)  # nothing is written twice
    trained_rewards.collect(tmp_path, file, requests=4)
    assert file.read_bytes() == first
    rows = json.loads(first)
    assert np.shape(rows["gold"]) == np.shape(rows["by_arm"][FITTED]["0"]["learned"]) == (4, 16)
    assert SHUFFLED not in trained_rewards.recorded(file)


def test_words_learn_a_reward_of_words_and_nothing_where_words_do_not_tell():
    rng = np.random.default_rng(0)
    drawn = rng.choice(["good", "bad", "hotel", "we", "the"], size=(40, 16, 8))
    texts = [[" ".join(text) for text in row] for row in drawn]
    gold = (drawn == "good").sum(2) - (drawn == "bad").sum(2) + 0.0
    learned = by_words(texts, gold, seed=0, pairs=200)
    assert correlation(np.array(learned["learned"]), gold) > 0.9
    assert learned["accuracy"] > 0.8
    chance = rng.normal(size=gold.shape)
    nothing = by_words(texts, chance, seed=0, pairs=200)
    assert abs(correlation(np.array(nothing["learned"]), chance)) < 0.2
    assert 0.3 < nothing["accuracy"] < 0.7


def test_the_reward_of_words_is_where_the_loss_is_flat():
    rng = np.random.default_rng(0)
    differences, sides = rng.normal(size=(50, 3)), rng.integers(2, size=50)
    weights = words_reward(differences, sides.astype(float), 0.1)
    # d/dw [mean log(1 + exp(-s d w)) + l2 |w|^2 / 2] = 0
    signs = 2 * sides - 1
    slope = -(signs / (1 + np.exp(signs * (differences @ weights)))) @ differences / 50 + 0.1 * weights
    np.testing.assert_allclose(slope, 0, atol=1e-4)
