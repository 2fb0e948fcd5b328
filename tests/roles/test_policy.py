"""A language model as the policy: one score by two routes, its value's place, and what it begins with."""

from __future__ import annotations

import numpy as np
import pytest

from hunch import lm
from hunch.core import State, UsageError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hunch.roles import (  # noqa: E402
    LMPolicy,
    LMPolicyConfig,
    PerceptronPolicy,
    TextTable,
)
from hunch.roles.prior.kinds import PriorConfig, build_prior  # noqa: E402
from hunch.roles.prior.language import prompt  # noqa: E402

WALKS = "pocket?corpus=walks"
STATES = [
    State("You see a red ball 2 steps left", "go to the red ball", ("turn left", "go forward", "go")),
    State(
        "You see a wall 1 step forward\nYou see a key 3 steps right", "go to a key", ("turn right", "drop")
    ),
    State("You see a box 3 steps forward", "go to a box", ("go forward",)),
]


@pytest.fixture(scope="module")
def whole():
    return lm.trainable(WALKS)


@pytest.fixture(scope="module")
def adapted():
    return lm.trainable(f"{WALKS}&train=lora")


def policy(model, **settings):
    apart = settings.pop("apart", False)
    return LMPolicy(model, LMPolicyConfig(width=8, **settings), 0, frozen_value=apart)


@pytest.mark.parametrize("normalise", ["sum", "token", "word"])
def test_the_policy_is_the_likelihood_prior_of_the_same_model(whole, normalise):
    """Two routes to one figure: with a gradient, and frozen behind a cache."""
    found = policy(whole, normalise=normalise).logprobs(STATES).exp()
    prior = build_prior(PriorConfig(way="likelihood", normalise=normalise), lm.load(WALKS, cache=None))
    for row, wanted, state in zip(found, prior.probabilities(STATES), STATES, strict=True):
        np.testing.assert_allclose(row[: len(state.options)].detach(), wanted, atol=1e-5)
        assert (row[len(state.options) :] == 0).all()


def test_both_are_each_alone(whole):
    acting = policy(whole)
    logprobs, values = acting.logprobs_and_values(STATES)
    torch.testing.assert_close(logprobs, acting.logprobs(STATES), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(values, acting.state_values(STATES), atol=1e-5, rtol=1e-5)


def test_padding_has_no_gradient(whole):
    acting = policy(whole)
    logprobs, _ = acting.logprobs_and_values(STATES)
    logprobs.exp().sum().backward()
    assert all(torch.isfinite(w.grad).all() for w in whole.parameters() if w.grad is not None)


def test_a_value_apart_is_read_off_the_model_without_adapters(adapted, whole):
    """To the last bit, whatever the adapters have learnt; and its error does not reach them."""
    acting = policy(adapted, apart=True)
    prompts = [prompt(state) for state in STATES]
    before = adapted.frozen_states(prompts)
    for weight in adapted.parameters():
        weight.data += 0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    assert torch.equal(adapted.frozen_states(prompts), before)
    assert torch.equal(whole.states(prompts), before)
    assert not torch.equal(adapted.states(prompts), before)
    acting.state_values(STATES).sum().backward()
    assert all(weight.grad is None for weight in adapted.parameters())
    adapted.restart()
    with pytest.raises(UsageError, match="train=lora"):
        policy(whole, apart=True)


def test_controls_begin_without_what_was_read_and_training_is_forgotten(whole, adapted):
    own = {name: weight.clone() for name, weight in whole.state_dict().items()}
    shuffled = policy(whole, start="shuffled")
    rows = "model.embed_tokens.weight"
    kept = whole.state_dict()
    assert not torch.equal(kept[rows], own[rows])
    assert torch.equal(kept[rows].sum(0), own[rows].sum(0)) or torch.allclose(
        kept[rows].sum(0), own[rows].sum(0), atol=1e-3
    )
    assert all(torch.equal(kept[name], own[name]) for name in own if name != rows)
    assert shuffled.evidence == policy(whole, start="random").evidence == "L0"
    first, again, other = (
        LMPolicy(whole, LMPolicyConfig(width=8, start="random"), seed).logprobs(STATES) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert policy(whole).evidence == "L1"
    assert all(torch.equal(weight, own[name]) for name, weight in whole.state_dict().items())
    with pytest.raises(UsageError, match="train=all"):
        policy(adapted, start="random")


def test_a_perceptron_begins_nearly_uniform():
    acting = PerceptronPolicy(TextTable(lm.load("bag-of-words")), 16, 0)
    logprobs, values = acting.logprobs_and_values(STATES)
    for row, state in zip(logprobs.exp(), STATES, strict=True):
        np.testing.assert_allclose(row[: len(state.options)].detach(), 1 / len(state.options), atol=0.02)
    assert torch.equal(values, acting.state_values(STATES))
    np.testing.assert_array_equal(values.detach().double().numpy(), acting.values(STATES))


def test_embeddings_are_standardised_by_all_that_was_seen():
    """In parts or at once, and saved; what all states share counts nothing."""
    whole, parts, again = (PerceptronPolicy(TextTable(lm.load("phrases")), 16, 0) for _ in range(3))
    whole.update_moments(STATES)
    parts.update_moments(STATES[:1])
    parts.update_moments(STATES[1:])
    numbers = whole.features.number(STATES)
    vectors = whole.spread(whole.features.vectors[numbers])
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-5)
    assert set(vectors.std(axis=0).round(2)) == {0.0, 1.0}
    again.load_state_dict(parts.state_dict())
    for found in (parts, again):
        torch.testing.assert_close(found.logprobs_and_values(STATES), whole.logprobs_and_values(STATES))
