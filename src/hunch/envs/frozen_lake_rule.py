"""``scripted:frozenlake``: a rule that reads the look-ahead of the Frozen Lake environment."""

from __future__ import annotations

import re

from hunch.lm.rules import rule


@rule("frozenlake", "9ec982f08dd764a7")
def frozenlake(prompt: str, options: tuple[str, ...]) -> str:
    """Move towards the bottom right corner, never into a hole, downwards rather than sideways.

    It reads the look-ahead sentences of the FrozenLake text environment, such as "Go Down leads to position
    (1, 0), a frozen cell (F).", and reaches the goal of the standard 4x4 map.
    """

    def promise(option: str) -> tuple[bool, int, int]:
        destinations = re.findall(
            rf"{re.escape(option)} leads to position \((\d+), (\d+)\), ([^.\n]*)", prompt
        )
        row, column, cell = destinations[-1] if destinations else (0, 0, "a hole")
        return "hole" not in cell, int(row) + int(column), int(row)

    return max(options, key=promise)
