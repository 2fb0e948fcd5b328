"""Numbers that programs and models give: how they are read, and probabilities from logits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def number(value: Any, *, finite: bool = True) -> float | None:
    """Return what a program or model gave for a number as a float; None if it is none.

    A bool counts, and an array without dimensions, as ``numpy.where`` returns; an int that no float can hold
    does not.

    Args:
        value: Anything.
        finite: True if NaN and infinity do not count.
    """
    if isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iuf":
        value = value[()]
    if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) or not finite else None


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities proportional to exp(logits), computed without overflow."""
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())
