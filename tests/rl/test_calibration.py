"""From values to probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hunch.rl.calibration import (
    Calibration,
    brier,
    calibration_error,
    error_by_chance,
    reliability,
)

episodes = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


@given(episodes)
def test_probabilities_never_fall_and_are_never_certain(told):
    values, successes = zip(*told, strict=True)
    fitted = Calibration.fit(values, successes)
    found = fitted(np.linspace(-1, 2, 50))
    assert (np.diff(found) >= 0).all()
    assert (found > 0).all()
    assert (found < 1).all()


@given(episodes)
def test_pools_keep_every_success(told):
    """Isotonic regression keeps the mean, but for the success and the failure added to each pool.

    w successes of n become n (w + 1) / (n + 2), which differs by (n - 2 w) / (n + 2): less than 1.
    """
    values, successes = zip(*told, strict=True)
    fitted = Calibration.fit(values, successes)
    assert abs(fitted(np.array(values)).mean() - np.mean(successes)) <= len(fitted.values) / len(values)


def test_a_single_failure_does_not_raise_what_comes_after_it():
    """The smoothed rates are 1/3 and 2/1002, so the pools are joined."""
    fitted = Calibration.fit([0.0] + [0.5] * 1000, [False] + [True] + [False] * 999)
    assert fitted(np.array([0.0, 0.5])).tolist() == [2 / 1003, 2 / 1003]


def test_a_value_that_tells_everything_is_trusted():
    fitted = Calibration.fit([0.0] * 50 + [0.5] * 50, [False] * 50 + [True] * 50)
    assert fitted(np.array([0.0, 0.2, 0.5, 0.9])).tolist() == [1 / 52, 1 / 52, 51 / 52, 51 / 52]


def test_a_value_that_tells_nothing_becomes_the_rate():
    rng = np.random.default_rng(0)
    fitted = Calibration.fit(rng.random(400).tolist(), (rng.random(400) < 0.3).tolist())
    told = fitted(rng.random(400))
    assert told.std() < 0.12
    assert abs(told.mean() - 0.3) < 0.06


def test_no_episode_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        Calibration.fit([], [])


def test_brier_and_reliability():
    assert brier([1.0, 0.0], [True, False]) == 0
    assert brier([0.5] * 4, [True, False, True, True]) == 0.25
    bins = reliability([0.05, 0.05, 0.95, 1.0], [False, True, True, True])
    assert [(round(b.predicted, 3), b.observed, b.n) for b in bins] == [(0.05, 0.5, 2), (0.975, 1.0, 2)]


def test_a_model_that_says_nine_in_ten_and_is_right_in_six():
    """Its error is 0.3, which chance does not explain; that of calibrated statements is explained."""
    rng = np.random.default_rng(0)
    stated = np.full(400, 0.9)
    biased = reliability(stated, rng.random(400) < 0.6)
    assert calibration_error(biased) == pytest.approx(0.3, abs=0.06)
    assert calibration_error(biased) > 3 * error_by_chance(stated)
    many = rng.random(400)
    right = [calibration_error(reliability(many, rng.random(400) < many)) for _ in range(200)]
    assert 0.9 < np.mean(np.array(right) <= error_by_chance(many)) < 0.99


@given(episodes)
def test_the_curve_covers_every_event(told):
    stated, came = zip(*told, strict=True)
    bins = reliability(stated, came)
    assert sum(own.n for own in bins) == len(stated)
    assert sum(own.n * own.observed for own in bins) == pytest.approx(sum(came))
    assert 0 <= calibration_error(bins) <= 1


def test_without_events_there_is_no_error():
    assert np.isnan(calibration_error([]))
    assert np.isnan(error_by_chance([]))
