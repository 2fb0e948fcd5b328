"""Compares two states of an agent, number by number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def difference(one: Any, other: Any, where: str = "") -> str | None:
    """Return the first place where two states of an agent differ, as a dotted path; None if they are equal.

    Tensors and arrays are equal if all of their numbers are; two nan are equal.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if one.keys() != other.keys():
            return where or "its keys"
        pairs = [(str(key), one[key], other[key]) for key in one]
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(one) != len(other):
            return f"{where}: {len(one)} and {len(other)} entries"
        pairs = [(str(i), a, b) for i, (a, b) in enumerate(zip(one, other, strict=True))]
    else:
        return None if _equal(one, other) else where or "its value"
    for name, first, second in pairs:
        place = difference(first, second, f"{where}.{name}" if where else name)
        if place is not None:
            return place
    return None


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if hasattr(one, "shape") or hasattr(other, "shape"):
        first, second = _array(one), _array(other)
        return bool(np.array_equal(first, second, equal_nan=first.dtype.kind == "f"))
    return bool(one == other)


def _array(value: Any) -> NDArray[Any]:
    """Return an array or a tensor, which may be on an accelerator, as an array."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    tensor = value.detach().cpu()
    # NumPy has no bfloat16. Each of its numbers is one of float32, too.
    return np.asarray(tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)
