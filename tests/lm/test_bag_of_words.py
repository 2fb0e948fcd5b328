"""Bags of words: the order is lost, the words are not."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hunch import lm
from hunch.core import UsageError
from hunch.lm.backends.bag_of_words import BagOfWords
from hunch.lm.backends.phrases import phrases

NAMES = st.lists(st.sampled_from(["mug", "go", "to", "the", "1", "2", ".", "über"]), min_size=1, max_size=12)


@given(NAMES, st.randoms())
def test_order_and_case_do_not_matter(words: list[str], random) -> None:
    shuffled = random.sample(words, len(words))
    one, other = BagOfWords().embed([" ".join(words), " ".join(shuffled).upper()])
    assert one.tobytes() == other.tobytes()
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-6)


def test_the_inner_product_is_that_of_the_counts() -> None:
    """With room enough for all words: cosine of (the 2, mug 1) and (the 1, mug 1, red 1)."""
    one, other = BagOfWords(dim=100_000).embed(["the mug the", "The red mug"])
    assert one @ other == pytest.approx((2 * 1 + 1 * 1) / np.sqrt(5 * 3), abs=1e-6)


def test_the_empty_text_is_zero() -> None:
    assert not BagOfWords().embed(["", " \n"]).any()


def test_the_same_in_every_process() -> None:
    code = (
        "from hunch.lm.backends.bag_of_words import *; "
        "print(BagOfWords(dim=8).embed(['open the fridge 1']).tolist())"
    )
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True).stdout for _ in range(2)}
    assert runs == {f"{BagOfWords(dim=8).embed(['open the fridge 1']).tolist()}\n".encode()}


def test_phrases_know_the_order_of_words_and_the_size_of_numbers() -> None:
    model = lm.load("phrases")
    here, there = model.embed(["position (0, 1)", "position (1, 0)"])
    assert not np.allclose(here, there)
    assert np.array_equal(*lm.load("bag-of-words").embed(["position (0, 1)", "position (1, 0)"]))
    near, nearer, far = model.embed([f"rolls left at {x} m/s" for x in ("0.51", "0.50", "2.50")])
    assert 0 < np.abs(near - nearer).max() < 0.02 < np.abs(near - far).max()
    assert dict(phrases("at 0.50")) == {"at": 1, "#": np.log(1.5), "at #": np.log(1.5)}
    assert dict(phrases("at 3"))["at 3"] == 1, "a whole number is a word, too"


def test_digits_that_are_no_numbers_are_words() -> None:
    for text in ("10²", "²", "① first"):
        assert np.isfinite(lm.load("phrases").embed([text])).all()
    assert dict(phrases("10²")) == {**dict(phrases("10")), "# ²": 1, "²": 1}


def test_as_a_spec() -> None:
    model = lm.load("bag-of-words?dim=16")
    assert (model.name, model.dim, model.evidence, model.verbs) == (
        "bag-of-words?dim=16",
        16,
        "L0",
        frozenset({"embed"}),
    )
    assert model.store is None, "cheaper to count again than to look up"
    for wrong in (0, -1, 1.5, "wide"):
        with pytest.raises(UsageError, match="dim of at least 1"):
            lm.load("bag-of-words", dim=wrong)
