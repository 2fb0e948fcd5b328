"""The kinds of models that the studies bring keep the contract of ``tests/lm/test_lm_contract.py``."""

import pytest
from tests.lm.test_lm_contract import (  # noqa: F401 - they run here with the models below
    test_embed_alone_batched_and_shuffled,
    test_empty_batches,
    test_refuses_the_verbs_it_lacks,
    test_says_what_it_is,
)

from hunch import lm


@pytest.fixture(scope="module", params=["tfidf", "random-words?seed=2", "random-network?seed=3"])
def model(request):
    """The bare model: the cache would hide whether its answers are pure."""
    return lm.load(request.param, cache=None).model
