"""Decision Transformer: the contract, resume, what it reads, and what it does for a wanted return."""

import pytest

from hunch.core import UsageError
from hunch_contrib.in_context.decision_transformer import Features


def test_numbers_that_were_never_recorded_are_read_and_words_are_not():
    features = Features.of(["Cart position -0.50 m.", "Cart position 0.25 m."])
    [place] = [row for name, row in features.rows.items() if name == "position 1"]
    assert [features(f"Cart position {x} m.")[place] for x in (-0.5, 0.1, 1.0)] == [-1.0, 0.2, 2.0]
    with pytest.raises(UsageError, match="never have 'pole' where"):
        features("Pole position 0.25 m.")
