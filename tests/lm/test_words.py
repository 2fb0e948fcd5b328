"""Lexical controls: they know which words are the same, and how much each tells, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from hunch import lm
from hunch.roles.prior.kinds import PriorConfig, build_prior
from hunch.roles.prior.similarity import SimilarityPrior


def cosine(spec: str, one: str, other: str) -> float:
    first, second = lm.load(spec).embed([one, other])
    return float(first @ second)


def test_words_weighs_names_above_function_words_and_numbers() -> None:
    """On (put .., the 0.15, mug .., in 0.15, box .., 1 0.3), by hand."""
    squares = [1 + 0.15**2 + 1 + 0.3**2, 0.15**2 + 1 + 0.3**2]
    shared = 0.15**2 + 1 + 0.3**2
    expected = shared / np.sqrt(squares[0] * squares[1])
    assert cosine("words", "put the mug 1", "the mug 1") == pytest.approx(expected, abs=1e-5)
    assert cosine("words", "go to the mug", "go to the pan") < cosine(
        "bag-of-words?dim=4096", "go to the mug", "go to the pan"
    )


def is_a_control(spec: str) -> None:
    """Check that a model is asked as an encoder is, stands for no knowledge, and stores nothing."""
    model = lm.load(spec)
    assert (model.evidence, model.verbs, model.store) == ("L0", frozenset({"embed"}), None)
    assert isinstance(build_prior(PriorConfig(), model), SimilarityPrior)
    assert not model.embed([""]).any()


@pytest.mark.parametrize("spec", ["words", "bag-of-words"])
def test_a_control_is_used_by_the_rule_of_the_encoder(spec: str) -> None:
    is_a_control(spec)
