"""Decision Transformer: the contract, resume, what it reads, and what it does for a wanted return."""

import pytest

from hunch.core import UsageError
from hunch_contrib.in_context.decision_transformer import DecisionTransformer, Features


def test_numbers_that_were_never_recorded_are_read_and_words_are_not():
    features = Features.of(["Cart position -0.50 m.", "Cart position 0.25 m."])
    [place] = [row for name, row in features.rows.items() if name == "position 1"]
    assert [features(f"Cart position {x} m.")[place] for x in (-0.5, 0.1, 1.0)] == [-1.0, 0.2, 2.0]
    with pytest.raises(UsageError, match="never have 'pole' where"):
        features("Pole position 0.25 m.")


def test_more_steps_than_the_model_reads_are_refused():
    pytest.importorskip("transformers")
    DecisionTransformer(lm="pocket?corpus=walks", context=170)
    with pytest.raises(UsageError, match="reads at most 512 tokens, and a step is three: set context to at"):
        DecisionTransformer(lm="pocket?corpus=walks", context=171)
