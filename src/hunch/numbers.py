"""Numbers from programs and models: conversion to float, and probabilities from logits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def number(value: Any, *, finite: bool = True) -> float | None:
    """Return a value from a program or model as a float; None if it is not a number.

    A bool and an array without dimensions, such as a result of ``numpy.where``, count; an int that is too
    large for a float does not.

    Args:
        value: Any value.
        finite: True if NaN and infinity do not count as numbers.
    """
    if isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iuf":
        value = value[()]
    if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) or not finite else None


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities proportional to exp(logits), computed without overflow."""
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())
