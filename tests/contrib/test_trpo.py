"""TRPO's update: its step written out in NumPy, and what it does where nothing is to be gained."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.rl.texts import EPISODES, GROUPS, START, Letters, answer  # noqa: E402

from hunch_contrib.tune.trpo import TrustRegion, conjugate  # noqa: E402
from hunch_contrib.tune.trpo_settings import TrustRegionConfig  # noqa: E402


def test_the_step_of_trpo():
    """The natural gradient, written out: the Fisher matrix of the drawn tokens, and the bound."""
    c = TrustRegionConfig(
        gamma=1.0, advantage="group", whiten=False, entropy=0.0, damping=0.05, cg_steps=30, step_kl=1e-3
    )
    policy = Letters(seed=1)
    before = policy.scores.detach().clone()
    learner = TrustRegion(policy, c)
    batch = learner.collect([[step] for step in EPISODES], GROUPS)
    pi = before.softmax(1).numpy()
    slopes, gains = [], []
    for row, step_ in enumerate(EPISODES):
        for place, token in enumerate(step_.decision.tokens):
            slope = np.zeros_like(pi)
            slope[place] = np.eye(3)[token] - pi[place]
            slopes.append(slope.ravel())
            gains.append(float(batch.advantages[row, place]))
    j, a = np.array(slopes), np.array(gains)
    g, fisher = j.T @ a / len(a), j.T @ j / len(a) + 0.05 * np.eye(pi.size)
    x = np.linalg.solve(fisher, g)
    wanted = x * np.sqrt(2 * c.step_kl / (x @ fisher @ x))
    told = learner.update([[step] for step in EPISODES], np.random.default_rng(0), groups=GROUPS)
    moved = (policy.scores.detach() - before).numpy().ravel()
    assert told["accepted"] == 1
    assert told["moved"] <= c.step_kl
    cosine = moved @ wanted / np.linalg.norm(moved) / np.linalg.norm(wanted)
    assert cosine == pytest.approx(1, abs=1e-4)
    shrunk = np.log(np.linalg.norm(moved) / np.linalg.norm(wanted)) / np.log(c.shrink)
    assert shrunk == pytest.approx(round(shrunk), abs=1e-2)
    assert 0 <= round(shrunk) < c.backtracks
    new = policy.judged([step.decision for step in EPISODES]).logprobs.detach()
    ratio = (new - batch.logprobs).exp()
    assert float((ratio * batch.advantages)[batch.mask].mean()) > float(batch.advantages[batch.mask].mean())


def test_trpo_stays_where_nothing_is_to_be_gained():
    same = [[answer(step.decision, 1.0)] for step in EPISODES]
    learner = TrustRegion(
        Letters(seed=1), TrustRegionConfig(advantage="group", gamma=1.0, whiten=False, entropy=0.0)
    )
    before = learner.policy.scores.detach().clone()
    told = learner.update(same, np.random.default_rng(0), groups=GROUPS)
    assert told["accepted"] == 0
    assert torch.equal(learner.policy.scores, before)


def test_trpo_learns_to_write():
    policy, rng = Letters(seed=0), np.random.default_rng(0)
    learner = TrustRegion(
        policy, TrustRegionConfig(step_kl=0.02, learning_rate=0.05, batch_size=0, entropy=0.0)
    )
    paid = []
    for _ in range(40):
        steps = [answer(own) for own in policy.sample([START] * 16, [rng] * 16)]
        paid.append(np.mean([step.transition.reward for step in steps]))
        told = learner.update([[step] for step in steps], rng)
    assert np.mean(paid[-5:]) > np.mean(paid[:5]) + 0.2
    assert "value_loss" in told


def test_conjugate_gradients_solve():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(6, 6))
    a, b = torch.tensor(a @ a.T + np.eye(6)), torch.tensor(rng.normal(size=6))
    torch.testing.assert_close(conjugate(lambda x: a @ x, b, 20), torch.linalg.solve(a, b))
