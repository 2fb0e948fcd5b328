"""A transformer with random weights: seeded, cached, and no bag of words."""

from __future__ import annotations

import numpy as np
import pytest

from hunch import lm
from hunch.core import UsageError
from hunch_studies.encoders.random_network import MAX_TOKENS, RandomNetwork, tokens

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

TEXTS = ["put the mug on the table", "put the table on the mug", ""]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HUNCH_CACHE", str(tmp_path / "answers.sqlite"))


@pytest.fixture(scope="module")
def network() -> RandomNetwork:
    return lm.load("random-network", cache=None).model


def test_the_seed_gives_the_weights(network: RandomNetwork) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    again, other = lm.load("random-network?seed=0"), lm.load("random-network?seed=1")
    assert torch.equal(torch.get_rng_state(), before), "nobody else's draws are touched"
    assert again.embed(TEXTS).tobytes() == network.embed(TEXTS).tobytes()
    assert not np.allclose(other.embed(TEXTS), network.embed(TEXTS), atol=0.1)
    assert again.revision != other.revision


def test_says_what_it_is(network: RandomNetwork) -> None:
    assert (network.dim, network.evidence, network.verbs) == (384, "L0", frozenset({"embed"}))
    per_layer = 4 * (384 * 384 + 384) + 2 * 384 * 1536 + 1536 + 384 + 4 * 384
    assert network.parameters == (30_522 + MAX_TOKENS + 2 + 2) * 384 + 6 * per_layer


def test_vectors_have_length_one_and_know_the_order_of_words(network: RandomNetwork) -> None:
    one, other, empty = network.embed(TEXTS)
    np.testing.assert_allclose([np.linalg.norm(v) for v in (one, other, empty)], 1, atol=1e-6)
    assert not np.array_equal(one, other)


def test_a_long_text_is_cut(network: RandomNetwork) -> None:
    long = "mug " * 400
    assert len(tokens(long)) == MAX_TOKENS
    assert network.embed([long]).tobytes() == network.embed([long + "table"]).tobytes()


def test_answers_are_cached_by_seed(network: RandomNetwork) -> None:
    first, second, other = (lm.load(f"random-network?seed={seed}") for seed in (0, 0, 1))
    assert first.embed(TEXTS).tobytes() == second.embed(TEXTS).tobytes()
    other.embed(TEXTS)
    assert (first.usage.calls, second.usage.calls, other.usage.calls) == (3, 0, 3)


def test_a_wrong_seed() -> None:
    for wrong in (-1, 0.5, "x"):
        with pytest.raises(UsageError, match="whole number"):
            lm.load("random-network", seed=wrong)
