"""The rules of the Game of 24 in exact arithmetic, and its solutions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from hunch.core import UsageError

Numbers: TypeAlias = tuple[Fraction, ...]
"""The numbers left, from the smallest to the largest."""

TARGET = Fraction(24)
MOST_NUMBERS = 6


def numbers(given: str | Iterable[int | str | Fraction]) -> Numbers:
    """Read numbers such as ``"4 4 6 8"``.

    Raises:
        UsageError: if they are not two to six numbers.
    """
    parts = re.split(r"[\s,]+", given.strip()) if isinstance(given, str) else list(given)
    try:
        read = tuple(sorted(Fraction(part) for part in parts))
    except (ValueError, TypeError, ZeroDivisionError):
        read = ()
    if not 2 <= len(read) <= MOST_NUMBERS:
        raise UsageError(f"A puzzle has two to {MOST_NUMBERS} numbers, such as '4 4 6 8', not {given!r}.")
    return read


def shown(left: Iterable[Fraction]) -> str:
    """Return numbers as text, fractions as ``8/3``."""
    return " ".join(map(str, left))


@lru_cache(maxsize=100_000)
def operations(left: Numbers) -> dict[str, Numbers]:
    """Return each legal operation on two of the numbers, such as ``4 + 6 = 10``, with the numbers left.

    Sums and products are listed once, the smaller number first; differences and quotients in both orders.
    There is no division by zero.
    """
    found: dict[str, Numbers] = {}
    for i in range(len(left)):
        for j in range(i + 1, len(left)):
            rest = left[:i] + left[i + 1 : j] + left[j + 1 :]
            for text, result in _on(left[i], left[j]):
                found[f"{text} = {result}"] = tuple(sorted((*rest, result)))
    return found


def _on(a: Fraction, b: Fraction) -> Iterable[tuple[str, Fraction]]:
    yield f"{a} + {b}", a + b
    yield f"{a} * {b}", a * b
    yield f"{b} - {a}", b - a
    yield f"{a} - {b}", a - b
    if a:
        yield f"{b} / {a}", b / a
    if b:
        yield f"{a} / {b}", a / b


@lru_cache(maxsize=1_000_000)
def solution(left: Numbers) -> tuple[str, ...] | None:
    """Return operations that leave exactly 24; None if there are none."""
    if len(left) == 1:
        return () if left[0] == TARGET else None
    for text, after in operations(left).items():
        rest = solution(after)
        if rest is not None:
            return (text, *rest)
    return None


def solvable(left: Numbers) -> bool:
    """Return whether 24 can be reached."""
    return solution(left) is not None
