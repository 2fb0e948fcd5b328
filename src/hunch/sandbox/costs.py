"""Measures the cost of running a program in a sandbox."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from hunch.sandbox.box import Sandbox

SOURCE = """
import numpy as np

def reward(position, action):
    return float(-np.linalg.norm(position)) - 0.1 * action
"""
ARGUMENTS: tuple[list[float], int] = ([0.3, -0.4], 1)
"""Arguments of a call. The program is as short as a reward, so that the sandbox's cost is visible."""


def measure(box: Sandbox, repeats: int = 30) -> dict[str, float]:
    """Return the median milliseconds of each operation; takes about a second.

    Args:
        box: A warm sandbox in which programs are allowed.
        repeats: Number of starts, and of batches of 1,000 calls; ten times as many single calls are made.
    """
    with box.load(SOURCE, "reward", float) as kept, box.load(SOURCE, "reward", float, state="fresh") as fresh:
        kept.map([ARGUMENTS] * 100)
        return {
            "start of a program": median(_times(lambda: box.load(SOURCE, "reward", float).close(), repeats)),
            "call": median(_times(lambda: kept(*ARGUMENTS), 10 * repeats)),
            "call in a batch of 1,000": median(_times(lambda: kept.map([ARGUMENTS] * 1_000), repeats))
            / 1_000,
            'call with state="fresh"': median(_times(lambda: fresh(*ARGUMENTS), repeats)),
        }


def _times(act: Callable[[], object], repeats: int) -> list[float]:
    """Milliseconds of each repeat."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        act()
        times.append((time.perf_counter() - start) * 1e3)
    return times
