"""Lexical controls of the studies."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.lm.test_words import is_a_control

from hunch import lm
from hunch.core import UsageError
from hunch_studies.encoders.words import FREQUENCIES, frequencies
from hunch_studies.priors_knowledge import document_frequencies, documents


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


@pytest.mark.parametrize("spec", ["tfidf", "random-words"])
def test_a_control_is_used_by_the_rule_of_the_encoder(spec: str) -> None:
    is_a_control(spec)
