"""TRPO's update: its step written out in NumPy, and what it does where nothing is to be gained."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.rl.texts import EPISODES, GROUPS, START, Letters, answer  # noqa: E402

from hunch import lm, methods  # noqa: E402
from hunch.core import HunchWarning, State, Transition, World  # noqa: E402
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


def updated(micro, episodes=EPISODES, groups=GROUPS):
    """Return the scores after an update, and its metrics."""
    c = TrustRegionConfig(gamma=1.0, advantage="group", whiten=False, entropy=0.01, micro=micro)
    learner = TrustRegion(Letters(seed=1), c)
    metrics = learner.update([[step] for step in episodes], np.random.default_rng(0), groups=groups)
    return learner.policy.scores.detach(), metrics


def test_the_step_of_trpo_is_the_same_in_passes():
    scores, metrics = updated(micro=64)
    assert metrics["accepted"] == 1
    for micro in (1, 2):
        in_passes, same = updated(micro)
        torch.testing.assert_close(in_passes, scores, atol=1e-6, rtol=0)
        assert same == pytest.approx(metrics, abs=1e-6)


def test_trpo_keeps_no_more_for_the_gradient_than_passes_of_micro_need():
    """What autograd keeps at one time, in numbers: the graph of a pass is freed before the next."""
    episodes, groups = EPISODES * 16, [group for _ in range(16) for group in GROUPS]
    most = {}
    for micro in (8, len(episodes)):
        numbers = [0, 0]  # now and at most

        class Kept:
            def __init__(self, tensor, numbers=numbers):
                self.tensor = tensor.detach()  # with its graph it would hold what holds it
                self.numbers = numbers
                numbers[0] += tensor.numel()
                numbers[1] = max(numbers)

            def __del__(self):
                self.numbers[0] -= self.tensor.numel()

        with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
            updated(micro, episodes, groups)
        most[micro] = numbers[1]
    assert most[8] < most[len(episodes)] / 4, most


def test_an_update_of_trpo_that_does_not_fit_computes_half_as_many_at_once(little_memory):
    options = {"max_tokens": 6, "episodes": 16, "micro": 16, "batch_size": 0, "epochs": 1}
    made = methods.find("trpo-text").agent_class(lm=lm.trainable("pocket?corpus=walks"), **options)
    made.begin(World(streams=16, steps=100), 0)
    states = [State("You see a red ball", stream=stream) for stream in range(16)]
    texts = made.act(states)
    made.observe([Transition(s, t, len(t) / 10, s, True, False) for s, t in zip(states, texts, strict=True)])
    little_memory(4)
    with pytest.warns(HunchWarning, match="From here on 4 are computed at once"):
        metrics = made.learn()
    assert metrics["accepted"] == 1


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
