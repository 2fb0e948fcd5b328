"""WorldCoder where states are no numbers."""

import pytest
from tests.methods.test_worldcoder import trained

import hunch


def test_states_that_are_no_numbers_are_refused_in_a_sentence():
    with pytest.raises(hunch.core.HunchError, match="numbers, texts and lists"):
        trained(30, env="hunch/MiniCatch-v0")
