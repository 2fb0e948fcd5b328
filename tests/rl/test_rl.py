"""Replay, Q-network, statistics."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hunch.rl.conservative import ConservativeLearner
from hunch.rl.q_learning import Batch, QLearner, QNetwork, Replay
from hunch.rl.statistics import (
    area,
    band_over_seeds,
    compared,
    contrast,
    first_reached,
    interquartile_mean,
    over_episodes,
    over_pairs,
    over_seeds,
)


@given(st.integers(1, 20), st.integers(0, 50))
def test_replay_keeps_the_last(capacity, n):
    replay = Replay(capacity, 2)
    for i in range(n):
        replay.add((i, i + 1, i + 2, float(i), i % 2 == 0, [i + 3], [i + 4, i + 5]))
    assert len(replay) == min(n, capacity)
    if n:
        batch = replay.sample(200, np.random.default_rng(0))
        assert set(batch.state) <= set(range(max(0, n - capacity), n))
        sets = [*batch.candidates.T, *batch.next_candidates.T]
        for distance, column in enumerate((*batch[:3], sets[0], *sets[2:])):
            assert (column == batch.state + distance).all()
        assert (sets[1] == -1).all()
        assert (batch.reward == batch.state).all()
        assert (batch.terminated == (batch.state % 2 == 0)).all()


def test_replay_grows_beyond_its_first_rows():
    replay = Replay(5_000)
    for i in range(3_000):
        replay.add((i, 0, 0, float(i), False, (), ()))
    rewards = replay.sample(20_000, np.random.default_rng(0)).reward
    assert rewards.min() < 10
    assert rewards.max() > 2_990


def test_shared_first_layer_equals_the_plain_concatenation():
    """Two routes to one value: the factored network, and a perceptron on [state, action]."""
    torch.manual_seed(0)
    network = QNetwork(6, 4, 8)
    states, actions = torch.randn(3, 6), torch.randn(5, 4)
    owner, index = torch.tensor([0, 0, 1, 2, 2, 2]), torch.tensor([0, 1, 4, 4, 2, 0])
    weight = torch.cat([network.state_part.weight, network.action_part.weight], dim=1)
    pairs = torch.cat([states[owner], actions[index]], dim=1)
    hidden = torch.relu(pairs @ weight.T + network.state_part.bias)
    plain = network.head(torch.relu(network.middle(hidden))).squeeze(-1)
    assert torch.allclose(network(states, actions, owner, index), plain, atol=1e-6)


def test_joint_network_has_no_state_part():
    network = QNetwork(0, 4, 8)
    three = torch.tensor([0, 1, 2])
    assert network(torch.zeros(3, 0), torch.randn(5, 4), three, three).shape == (3,)


def three_states():
    """Features of three states with one to three actions."""
    actions = [np.array([0, 1, 2]), np.array([4]), np.array([3, 0])]
    return SimpleNamespace(
        state_dim=6,
        action_dim=4,
        rows=lambda states, own: np.concatenate([actions[i][a] for i, a in zip(states, own, strict=True)]),
        vectors=np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32),
        matrix=np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32),
    )


def test_an_update_bootstraps_from_the_best_candidate_of_the_next_state():
    """And not at all where the episode ended."""
    features, candidates = three_states(), [np.array([2, 0]), np.array([0]), np.array([0, 1])]
    learner, other = QLearner(features, 0, hidden=8), QLearner(features, 1, hidden=8)
    learner.target = other.network.requires_grad_(False)
    state, action, following = np.array([0, 2, 1]), np.array([2, 1, 0]), np.array([1, 0, 2])
    reward, ended = np.array([0.5, -1.0, 2.0]), np.array([0.0, 0.0, 1.0])
    own = [learner.values(features, [s], [np.array([a])])[0][0] for s, a in zip(state, action, strict=True)]
    best = [other.values(features, [s], [candidates[s]])[0].max() for s in following]
    wanted = reward + learner.gamma * (1 - ended) * best
    batch = Batch(state, action, following, reward, ended, state[:, None], following[:, None])
    loss = learner.update(batch, lambda _, sets: [candidates[i] for i in sets[:, 0]])
    assert loss == pytest.approx(0.5 * np.mean((own - wanted) ** 2), abs=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses_of_a_batch_are_scalars(reduction):
    """Half the squared Bellman error, and the same plus beta times the mean conservative term."""
    features, candidates = three_states(), [np.array([2, 0]), np.array([0]), np.array([0, 1])]
    state, action, following = np.array([0, 2, 1]), np.array([2, 1, 0]), np.array([1, 0, 2])
    reward, ended = np.array([0.5, -1.0, 2.0]), np.ones(3)  # so y = r
    batch = Batch(state, action, following, reward, ended, state[:, None], following[:, None])
    plain = QLearner(features, 0, hidden=8)
    conservative = ConservativeLearner(features, 0, beta=0.5, hidden=8)
    plain.reduction = conservative.reduction = reduction

    def listed(_, sets):
        return [candidates[i] for i in sets[:, 0]]

    chosen = plain.values(features, list(state), [np.array([a]) for a in action])
    q = np.concatenate(chosen)
    error = 0.5 * (q - reward) ** 2
    bellman = error.mean() if reduction == "mean" else error.sum()
    of_candidates = plain.values(features, list(state), [candidates[i] for i in state])
    log_sums = np.array([np.log(np.exp(each).sum()) for each in of_candidates])
    wanted = {plain: bellman, conservative: bellman + 0.5 * (log_sums - q).mean()}
    for learner, value in wanted.items():
        loss = learner.loss(torch.from_numpy(q).float(), batch, listed)
        assert loss.shape == ()
        assert float(loss.detach()) == pytest.approx(value, abs=1e-5)


def test_candidates_of_several_states_have_the_values_that_they_have_alone():
    """Whatever stands beside them, and in padded tables too."""
    features = three_states()
    learner = ConservativeLearner(features, 0, beta=1.0, hidden=8)
    candidates = [np.array([2, 0]), np.array([0]), np.array([0, 1])]
    together = learner.values(features, [0, 1, 2], candidates)
    table = learner.padded(np.array([0, 1, 2]), candidates).detach().numpy()
    for i, (own, found) in enumerate(zip(candidates, together, strict=True)):
        alone = learner.values(features, [i], [own])[0]
        assert found == pytest.approx(alone, abs=1e-6)
        assert table[i, : len(own)] == pytest.approx(alone, abs=1e-6)
        assert np.isneginf(table[i, len(own) :]).all()


def test_interquartile_mean_drops_the_tails():
    assert interquartile_mean([0, 1, 2, 3, 4, 5, 6, 1000]) == pytest.approx(3.5)


def test_an_unknown_score_is_not_the_best_that_is_cut_off():
    assert np.isnan(interquartile_mean([0.1, 0.2, 0.3, 0.4, np.nan]))
    curves = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, np.nan], [3.0, 1.0], [4.0, 1.0]])  # (seeds, points)
    assert interquartile_mean(curves) == pytest.approx([2.0, np.nan], nan_ok=True)
    estimate = over_seeds([0.1, 0.2, 0.3, 0.4, np.nan])
    assert np.isnan([estimate.value, estimate.low, estimate.high]).all()


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_interval_holds_the_estimate(values):
    estimate = over_seeds(values)
    assert estimate.low - 1e-9 <= estimate.value <= estimate.high + 1e-9
    assert min(values) - 1e-9 <= estimate.low
    assert estimate.high <= max(values) + 1e-9


def test_one_seed_says_nothing_of_the_spread():
    estimate = over_seeds([0.5])
    assert estimate.value == 0.5
    assert np.isnan(estimate.low)
    assert str(estimate) == estimate.short() == "0.50"
    assert estimate.short(digits=0) == "0"
    assert str(over_episodes([])) == "-"


def test_few_seeds_have_a_range_and_it_is_called_so():
    few, enough = over_seeds([0.7, 0.8, 0.3]), over_seeds([0.7, 0.8, 0.3, 0.5, 0.6])
    assert (few.low, few.high, few.range_of) == (0.3, 0.8, 3)
    assert str(few) == "0.60 (range of 3 seeds: 0.30 to 0.80)"
    assert enough.range_of == 0
    assert "[" in str(enough)


def test_an_interval_over_pairs_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        estimate = over_pairs(rng.normal(0.1, 0.2, size=8))
        inside += estimate.low <= 0.1 <= estimate.high
    assert inside / 400 == pytest.approx(0.95, abs=0.035)
    assert np.isnan(over_pairs([0.1]).low)


def test_a_level_has_to_hold_in_a_second_window():
    steps = list(range(10, 3010, 10))
    risen = [False] * 100 + [True] * 200
    assert first_reached(steps, risen, 0.5) == steps[124], "25 of 50 for the first time"
    burst = [False] * 100 + [True] * 30 + [False] * 170
    assert first_reached(steps, burst, 0.5) is None
    assert first_reached(steps[:99], risen[-99:], 0.5) is None, "no second window"
    exactly = [episode % 50 < 28 for episode in range(100)]
    assert first_reached(range(1, 101), exactly, 28 / 50) == 50, "28 of 50 are a rate of 0.56"


def test_a_flat_rate_below_the_level_seldom_reaches_it():
    """A success rate of 0.37 that never changes passes half of a running window in 46 % of simulations."""
    rng = np.random.default_rng(0)
    reached = [first_reached(range(300), rng.random(300) < 0.37, 0.5) is not None for _ in range(500)]
    assert np.mean(reached) < 0.05


def test_area_is_the_mean_of_the_tenths():
    steps = [5, 15, 25, 95, 96]
    assert area(steps, [True, False, True, True, False], 100) == pytest.approx((1 + 0 + 7 * 1 + 0.5) / 10)
    assert area([], [], 100) == 0
    assert area([10], [True], 100) == 1, "what was seen last holds until something else is seen"
    assert area([100], [True], 100) == pytest.approx(0.1)


def test_a_verdict_needs_three_pairs_and_is_seldom_wrong_about_equals():
    assert compared([0.7, 0.8, 0.9], [0.0, 0.0, 0.2]).shown
    assert compared([0.7, 0.8, 0.5], [0.0, 0.0, 0.6]).shown is False, "one pair is the other way round"
    assert compared([0.7, 0.8], [0.0, 0.1]).shown is None, "two pairs never tell"
    assert compared([float("nan")] * 3, [0.0] * 3).shown is None
    rng = np.random.default_rng(0)
    wrong = [compared(rng.random(6), rng.random(6)).shown for _ in range(2_000)]
    assert np.mean(wrong) == pytest.approx(0.025, abs=0.01), "one side of a two-sided interval of 95 %"


def test_what_cannot_be_shown_says_what_is_missing():
    """No room above the other arm, or no success at all; a lead that is shown is shown all the same."""
    crowded = compared([0.97, 1.0, 0.98], [0.98, 0.99, 0.97], best=1.0)
    assert str(crowded).startswith("cannot be shown here (no room: the other has 0.98 of 1), lead 0.0")
    assert compared([0.97, 1.0, 0.98], [0.98, 0.99, 0.97]).said == "not shown", "what is best is not known"
    assert compared([1.0, 1.0, 1.0], [0.96, 0.97, 0.96], best=1.0).said == "shown"
    assert compared([0.0] * 3, [0.0] * 3, best=1.0).lacks == "no run of either ever succeeded"
    assert compared([0.0] * 3, [0.5, 0.6, 0.4], best=1.0).said == "not shown"
    assert compared([15.0] * 3, [15.9] * 3, best=16).said == "cannot be shown here"


@pytest.mark.parametrize(("seeds", "covered"), [(3, 0.75), (5, 0.91)])
def test_the_bootstrap_of_few_seeds_covers_less_than_it_says(seeds, covered):
    """The figures that the documentation gives, for normal scores with the mean 0."""
    scores = np.random.default_rng(1).normal(size=(seeds, 4_000))
    low, high = band_over_seeds(scores, resamples=400)
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(covered, abs=0.015)


def test_wilson_interval_of_a_known_case():
    estimate = over_episodes([True] * 8 + [False] * 2)
    assert estimate.value == 0.8
    assert estimate.low == pytest.approx(0.4902, abs=1e-3)
    assert estimate.high == pytest.approx(0.9433, abs=1e-3)


def test_no_episode_is_no_figure():
    assert np.isnan(over_episodes([]).value)


scores = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(scores, scores)
def test_one_rule_makes_one_statement(mine, others):
    """Never both ahead of each other, and nothing from fewer than three pairs."""
    forth, back = compared(mine, others, best=1.0), compared(others, mine, best=1.0)
    assert not (forth.shown and back.shown)
    assert forth.pairs == min(len(mine), len(others))
    assert (forth.shown is None) == (forth.said == "cannot be shown here") == bool(forth.lacks)
    if forth.pairs < 3:
        assert forth.shown is None
    elif forth.shown is not None:
        assert forth.shown == (forth.lead.low > 0)
        assert forth.size in str(forth)


def test_three_pairs_whose_interval_holds_nought():
    """All three are ahead, which is no verdict of Student's."""
    found = contrast({0: 0.9, 1: 0.5, 2: 0.8}, {0: 0.1, 1: 0.4, 2: 0.7, 3: 0.1})
    assert str(found) == "not shown, by 0.33 [-0.67, 1.34]"
    alone = contrast({0: 1.0, 1: 0.3}, {0: 0.06, 2: 0.1})
    assert str(alone) == "cannot be shown here (1 pair of seeds, 3 are needed), lead 0.94"
    nothing = contrast({}, {0: 0.06})
    assert str(nothing) == "cannot be shown here (0 pairs of seeds, 3 are needed), lead -"


def test_band_holds_the_mean_and_narrows_with_seeds():
    values = np.random.default_rng(0).random((30, 5))
    low, high = band_over_seeds(values)
    few_low, few_high = band_over_seeds(values[:4])
    assert ((low <= interquartile_mean(values)) & (interquartile_mean(values) <= high)).all()
    assert (high - low < few_high - few_low).all()
