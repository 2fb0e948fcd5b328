"""Lexical controls: they know which words are the same, and how much each tells, and nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hunch import lm
from hunch.core import UsageError
from hunch.roles.prior.kinds import PriorConfig, build_prior
from hunch.roles.prior.similarity import SimilarityPrior
from hunch_studies.encoders.words import FREQUENCIES, frequencies
from hunch_studies.priors_knowledge import document_frequencies, documents

CONTROLS = ("words", "tfidf", "random-words")


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


def test_tfidf_weighs_rare_words_most() -> None:
    total, holding = frequencies()
    model = lm.load("tfidf").model
    assert model.weight("the") < model.weight("cabinet") < model.weight("keychain") < model.weight("axolotl")
    assert model.weight("axolotl") == pytest.approx(np.log(1 + total) + 1)
    assert max(holding.values()) <= total


@pytest.mark.slow
def test_the_document_frequencies_are_those_of_the_stated_games() -> None:
    assert document_frequencies(documents()) == json.loads(FREQUENCIES.read_text())


def test_random_words_are_the_mean_of_their_words() -> None:
    both, one, other = lm.load("random-words").embed(["mug fridge", "mug", "fridge"])
    assert both @ one == pytest.approx(both @ other, abs=0.1)
    assert abs(one @ other) < 0.2, "unlike words are unlike"
    seeded = lm.load("random-words?seed=1").embed(["mug"])[0]
    assert abs(seeded @ one) < 0.2
    for wrong in (-1, 0.5, "x"):
        with pytest.raises(UsageError, match="whole number"):
            lm.load("random-words", seed=wrong)


@pytest.mark.parametrize("spec", CONTROLS)
def test_a_control_is_used_by_the_rule_of_the_encoder(spec: str) -> None:
    model = lm.load(spec)
    assert (model.evidence, model.verbs, model.store) == ("L0", frozenset({"embed"}), None)
    assert isinstance(build_prior(PriorConfig(), model), SimilarityPrior)
    assert not model.embed([""]).any()
