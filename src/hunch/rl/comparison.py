"""Compares two states of an agent bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def difference(one: Any, other: Any, where: str = "") -> str | None:
    """Return the first place where two states of an agent differ, as a dotted path; None if they are equal.

    Tensors and arrays are compared bit for bit; two nan are equal.
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
    inside = (difference(a, b, f"{where}.{name}" if where else name) for name, a, b in pairs)
    return next((place for place in inside if place is not None), None)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other)
    if hasattr(one, "shape") or hasattr(other, "shape"):
        here, there = (np.asarray(value.cpu() if hasattr(value, "cpu") else value) for value in (one, other))
        return bool(np.array_equal(here, there, equal_nan=here.dtype.kind == "f"))
    return bool(one == other)
