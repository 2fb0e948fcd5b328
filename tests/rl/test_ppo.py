"""PPO: advantages by hand, gradients that add up, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hunch.core import HunchError, State, Transition

torch = pytest.importorskip("torch")

from hunch.rl.ppo import PPOConfig, PPOLearner, standardised  # noqa: E402


class Table:
    """A real policy: a score for each action text, and a value for each observation."""

    def __init__(self) -> None:
        self.scores = torch.nn.Parameter(torch.zeros(4))
        self.worth = torch.nn.Parameter(torch.arange(6, dtype=torch.float32) / 10)

    def both(self, states):
        return self.logprobs(states), self.values(states)

    def logprobs(self, states):
        rows = [self.scores[[int(a) for a in s.options]].log_softmax(0) for s in states]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-torch.inf)

    def values(self, states):
        return self.worth[[int(s.observation) for s in states]]

    def parameters(self):
        return {"policy": [self.scores], "value": [self.worth]}

    def state_dict(self):
        return {"scores": self.scores.detach(), "worth": self.worth.detach()}

    def load_state_dict(self, state):
        with torch.no_grad():
            self.scores.copy_(state["scores"])
            self.worth.copy_(state["worth"])


def step(here, action, reward, there, *, end="", actions=("0", "1", "2")):
    before, after = State(str(here), actions=actions), State(str(there), actions=actions)
    return Transition(before, action, reward, after, end == "terminated", end == "truncated")


STREAM = [
    step(0, "0", 1.0, 1),
    step(1, "1", 0.0, 2, end="truncated"),
    step(3, "2", 2.0, 4, end="terminated"),
    step(0, "0", 0.5, 5),
]


def test_advantages_are_the_sums_of_the_paper():
    """A truncated episode and the end of a segment go on with the value of the next state."""
    c = PPOConfig(gamma=0.9, gae=0.8)
    found = PPOLearner(Table(), c).collect([STREAM, STREAM[2:3]])
    v = np.arange(6) / 10
    d = [1 + 0.9 * v[1] - v[0], 0.9 * v[2] - v[1], 2 - v[3], 0.5 + 0.9 * v[5] - v[0]]
    wanted = [d[0] + 0.72 * d[1], d[1], d[2], d[3], d[2]]
    np.testing.assert_allclose(found.advantages.numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(found.returns.numpy(), np.array(wanted) + v[[0, 1, 3, 0, 3]], rtol=1e-5)
    assert found.logprobs.numpy() == pytest.approx(-np.log(3))


def one_update(config, **more):
    learner = PPOLearner(Table(), config, **more)
    told = learner.update([STREAM, STREAM], np.random.default_rng(0))
    return learner, told


def test_a_batch_is_the_sum_of_its_parts():
    whole, _ = one_update(PPOConfig(micro=8, batch_size=8))
    parts, _ = one_update(PPOConfig(micro=3, batch_size=8))
    torch.testing.assert_close(whole.policy.scores, parts.policy.scores)
    torch.testing.assert_close(whole.policy.worth, parts.policy.worth)


def test_actions_that_pay_become_likelier_among_those_that_there_are():
    """Action 3 is admissible in a longer list alone: padding of the shorter ones has no part in it."""
    stream = [
        step(0, "0", 1.0, 1, end="terminated"),
        step(0, "1", -1.0, 1, end="terminated"),
        step(0, "3", -1.0, 1, end="terminated", actions=("0", "1", "2", "3")),
    ]
    learner = PPOLearner(Table(), PPOConfig(learning_rate=0.1))
    for _ in range(5):
        told = learner.update([stream], np.random.default_rng(0))
    assert all(np.isfinite(list(told.values())))
    scores = learner.policy.scores.detach()
    assert scores[0] > scores[1]
    assert scores[0] > scores[3]


def test_a_prior_pulls_and_a_target_ends_the_update():
    likes = torch.tensor([0.1, 0.1, 0.8]).log()

    def prior(states):
        return likes.expand(len(states), -1)

    quiet = PPOConfig(entropy=0.0, learning_rate=0.05, epochs=20, clip=0.01)
    free, _ = one_update(quiet)
    pulled, told = one_update(replace(quiet, kl=10.0), prior=prior)
    assert pulled.policy.scores.softmax(0)[2] > free.policy.scores.softmax(0)[2] + 0.1
    assert told["prior_kl"] > 0
    ended, _ = one_update(replace(quiet, kl=10.0, target_kl=1e-4), prior=prior)
    assert (ended.policy.scores - 0).abs().max() < (pulled.policy.scores - 0).abs().max()


def test_values_alone_leave_the_policy_as_it_is():
    learner = PPOLearner(Table(), PPOConfig(learning_rate=0.1, clip_value=False))
    told = learner.update([STREAM], np.random.default_rng(0), parts=("value",))
    assert set(told) == {"value_loss"}
    assert torch.equal(learner.policy.scores, torch.zeros(4, requires_grad=True))
    assert not torch.equal(learner.policy.worth, Table().worth)


def test_a_gradient_that_is_not_finite_moves_nothing():
    learner = PPOLearner(Table(), PPOConfig())
    before = {name: weight.clone() for name, weight in learner.policy.state_dict().items()}
    with pytest.raises(HunchError, match="not finite"):
        learner.update([[step(0, "0", float("inf"), 1, end="terminated"), *STREAM]], np.random.default_rng(0))
    assert all(torch.equal(before[name], weight) for name, weight in learner.policy.state_dict().items())


class Steep(Table):
    """Its values overflow where its weights do not."""

    def values(self, states):
        return 100 * super().values(states)


def test_an_update_after_which_an_output_is_not_finite_is_refused():
    """All its gradients and weights are finite, but the next checkpoint would hold a ruined policy."""
    learner = PPOLearner(Steep(), PPOConfig(learning_rate=1e37, epochs=1))
    with pytest.raises(HunchError, match="last checkpoint is sound"):
        learner.update([STREAM], np.random.default_rng(0))
    assert torch.isfinite(learner.policy.worth).all()


def test_a_single_admissible_action_can_be_learnt_from():
    learner = PPOLearner(Table(), PPOConfig())
    only = [step(0, "1", 1.0, 1, end="terminated", actions=("1",))]
    told = learner.update([only], np.random.default_rng(0))
    assert told["entropy"] == 0


@pytest.mark.parametrize("value", [0.1, 0.7, 1.0, -3.3e4])
def test_equal_advantages_move_nothing(value):
    """Their mean is off by rounding, and their deviation by as much: the quotient would be about one."""
    for n in range(2, 200):
        equal = torch.full((n,), value)
        noisy = equal * (1 + torch.tensor([1e-7, 0.0] * n)[:n])
        assert not standardised(equal).any()
        assert not standardised(noisy).any()


def test_other_advantages_have_mean_zero_and_variance_one():
    given = torch.tensor([1.0, 0.0, 0.5, 1.0]) * 1e-3 + 1.0
    told = standardised(given)
    assert told.mean().item() == pytest.approx(0, abs=1e-3)
    assert told.std(correction=0).item() == pytest.approx(1, abs=1e-3)
    assert told.argmin() == 1
