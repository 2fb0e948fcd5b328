"""A policy that writes: what it writes, how it is judged, and that it learns in two turns of free text."""

from __future__ import annotations

import copy
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import hunch
from hunch import lm
from hunch.core import State, World

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("hunch.lm.training")

from hunch.methods.policy.agent import PolicyAgent  # noqa: E402
from hunch.rl.policy import Decision  # noqa: E402
from hunch.rl.policy_gradient import PRESETS  # noqa: E402
from hunch.roles.policy.text import TextPolicy, TextPolicyConfig  # noqa: E402
from hunch.roles.prior.language import prompt  # noqa: E402

WALKS = "pocket?corpus=walks"
MOVES = ("turn left", "turn right", "go forward", "drop")
SIGHTS = ("You see a red ball 2 steps left", "You see a key 3 steps forward")


def listed(state):
    """The prompts that the model was trained on name the actions; the environment takes any text."""
    return prompt(replace(state, actions=MOVES))


@pytest.fixture(scope="module")
def models():
    return lm.trainable(WALKS, end="\n"), lm.trainable(WALKS, end="\n")


def policy(models, **options):
    return TextPolicy(models[0], TextPolicyConfig(max_tokens=8, width=8), 0, prompt=listed, **options)


STATES = [State(sight, "go to a red ball") for sight in (*SIGHTS, SIGHTS[0])]


def written(acting, seed=0):
    rng = np.random.default_rng(seed)
    return acting.sample(STATES, [rng] * len(STATES))


def test_what_was_written_is_judged_as_it_was_drawn(models):
    """The same log-probability of each token, whatever is computed together; the ratio begins at 1."""
    acting = policy(models)
    decisions = written(acting)
    found = acting.evaluate(STATES, decisions)
    assert found.mask.sum(1).tolist() == [len(own.tokens) for own in decisions]
    for row, mask, own in zip(found.logprobs, found.mask, decisions, strict=True):
        np.testing.assert_allclose(row[mask].detach(), own.logprobs, atol=1e-5)
        assert not row[~mask].any()
    assert decisions == written(acting)
    np.testing.assert_allclose(found.values[:, 0].detach(), acting.values(STATES), atol=1e-5)


def test_a_text_of_another_player_is_judged_too(models):
    acting = policy(models)
    own = written(acting)[0]
    found = acting.evaluate(STATES[:2], [own, Decision("drop")])
    assert found.mask.sum(1).tolist() == [
        len(own.tokens),
        len(models[0].as_written([listed(STATES[1])], ["drop"])[0].tokens),
    ]
    assert found.logprobs[found.mask].isfinite().all()


def test_the_values_error_does_not_train_the_model(models):
    acting = policy(models)
    acting.evaluate(STATES, written(acting)).values.sum().backward()
    assert all(weight.grad is None for weight in models[0].parameters())
    assert all(weight.grad is not None for weight in acting.head.parameters())
    only = acting.evaluate(STATES, written(acting), "value")
    assert not only.logprobs.requires_grad


def test_the_divergence_is_measured_from_a_reference(models):
    """Another model, or the same one before its training: no copy, and the weights are as they were."""
    for reference in (models[1], "start"):
        acting = policy(models, reference=reference)
        decisions = written(acting)
        before = acting.evaluate(STATES, decisions)
        torch.testing.assert_close(
            acting.reference_logprobs(STATES, decisions), before.logprobs, atol=1e-5, rtol=0
        )
        for weight in models[0].parameters():
            weight.data += 0.01 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
        now = acting.evaluate(STATES, decisions)
        torch.testing.assert_close(
            acting.reference_logprobs(STATES, decisions), before.logprobs, atol=1e-5, rtol=0
        )
        assert torch.equal(acting.evaluate(STATES, decisions).logprobs, now.logprobs)
        assert (now.logprobs - before.logprobs).abs().max() > 1e-3
    assert policy(models).reference_logprobs(STATES, decisions) is None
    random = TextPolicy(
        models[0], TextPolicyConfig(max_tokens=8, width=8, start="random"), 0, reference="start"
    )
    found = random.evaluate(STATES, decisions).logprobs
    torch.testing.assert_close(random.reference_logprobs(STATES, decisions), found, atol=1e-5, rtol=0)


def test_a_reference_of_its_own_keeps_its_weights_beside_a_model_that_begins_at_random(models):
    decisions = written(policy(models))
    pretrained = policy(models).evaluate(STATES, decisions).logprobs
    for start in ("random", "shuffled"):
        settings = TextPolicyConfig(max_tokens=8, width=8, start=start)
        acting = TextPolicy(models[0], settings, 0, prompt=listed, reference=models[1])
        reference = acting.reference_logprobs(STATES, decisions)
        torch.testing.assert_close(reference, pretrained, atol=1e-5, rtol=0)
        assert (acting.evaluate(STATES, decisions).logprobs - pretrained).abs().max() > 1


class TwoTurns(gymnasium.Env):
    """Pays for the word right, then for the word drop; any text is an action."""

    observation_space = gymnasium.spaces.Text(1000)
    action_space = gymnasium.spaces.Text(1000)
    task = "go to a red ball"

    def info(self, **more):
        return {"free_text": True, "task": self.task, **more}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.turn = 0
        return SIGHTS[0], self.info()

    def step(self, action):
        paid = float(("right", "drop")[self.turn] in action)
        self.turn += 1
        return SIGHTS[1], paid, self.turn == 2, False, self.info(success=paid > 0)


class Writer(PolicyAgent):
    """Writes with a model of the tests."""

    def __init__(self, model, update, **options):
        super().__init__(**options)
        self.model = model
        self.update = update

    def objective(self):
        return self.update

    def make_policy(self, seed):
        return TextPolicy(self.model, TextPolicyConfig(max_tokens=8, width=8), seed, prompt=listed)


@pytest.mark.parametrize("name", ["ppo", "reinforce"])
def test_a_policy_that_writes_learns_in_two_turns(name, models):
    """By updates of four episodes in each of four streams; what it is paid rises, and it resumes exactly."""
    update = replace(PRESETS[name], batch_size=32, learning_rate=1e-3, gamma=1.0)
    agent = Writer(models[0], update, horizon=8)
    found = hunch.train(agent, [TwoTurns() for _ in range(4)], steps=640, seed=0)
    paid = [episode.episode_return for episode in found.episodes]
    assert np.mean(paid[-40:]) > np.mean(paid[:40]) + 0.5
    again = Writer(models[1], update, horizon=8)
    again.begin(World(streams=4, steps=1000), 0)
    again.load_state_dict(copy.deepcopy(agent.state_dict()))
    state = State(SIGHTS[0], TwoTurns.task)
    assert again.act([state]) == agent.act([state])
    assert agent.explain(state).note.startswith("value ")
    assert agent.player(1).act([state]) == agent.player(1).act([state])


def test_an_agent_that_writes_keeps_the_contract(models):
    """It resumes in the middle of an update's steps, evaluation leaves no trace, and more."""
    update = replace(PRESETS["ppo"], batch_size=8)
    hunch.methods.check(Writer(models[0], update, horizon=6), TwoTurns(), steps=20)


def test_the_temperature_holds_for_lists_of_actions(models):
    """At 0 the likeliest action is taken; at 1 the draws are those without a temperature."""
    acting = policy(models)
    states = [replace(state, actions=MOVES) for state in STATES]
    likeliest = [MOVES[p.argmax()] for p in acting.probabilities(states)]
    for seed in range(20):
        rngs = [np.random.default_rng(seed) for _ in states]
        assert [own.text for own in acting.sample(states, rngs, temperature=0)] == likeliest
    drawn = [
        [own.text for own in acting.sample(states, [np.random.default_rng(seed) for _ in states], *given)]
        for given in ((), (1.0,))
        for seed in range(9)
    ]
    assert drawn[:9] == drawn[9:]
    cold = [acting.sample(states[:1], [np.random.default_rng(seed)], 0.2)[0].text for seed in range(60)]
    warm = [acting.sample(states[:1], [np.random.default_rng(seed)], 1.0)[0].text for seed in range(60)]
    assert cold.count(likeliest[0]) >= warm.count(likeliest[0])
