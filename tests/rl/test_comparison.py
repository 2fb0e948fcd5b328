"""Where two states of an agent differ."""

import numpy as np
import pytest
import torch

from hunch.rl.comparison import difference

KINDS = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool]


@pytest.mark.parametrize("dtype", KINDS)
def test_tensors_of_every_kind_are_compared(dtype):
    weights = torch.tensor([0.0, 1.0, 1.0]).to(dtype)
    state = {"weights": [weights, 1], "updates": 3}
    assert difference(state, {"weights": [weights.clone(), 1], "updates": 3}) is None
    other = weights.clone()
    other[2] = 0
    assert difference(state, {"weights": [other, 1], "updates": 3}) == "weights.0"
    assert difference(state, {"weights": [weights[:2], 1], "updates": 3}) == "weights.0"


def test_the_smallest_step_of_bfloat16_is_a_difference():
    one = torch.ones(3, dtype=torch.bfloat16)
    assert difference({"a": one}, {"a": one + 2**-7}) == "a"


def test_weights_with_gradients_are_compared():
    weights = torch.nn.Parameter(torch.ones(2))
    assert difference([weights], [torch.ones(2)]) is None


def test_nan_equals_nan():
    assert difference(float("nan"), float("nan")) is None
    assert difference(np.array([np.nan, 1.0]), np.array([np.nan, 1.0])) is None
    assert difference(np.array([np.nan, 1.0]), np.array([np.nan, 2.0])) == "its value"
