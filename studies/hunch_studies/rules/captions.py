"""``scripted:captions``: a rule that compares captions of DoorKey and KeyCorridor."""

from __future__ import annotations

import re

from hunch.lm.rules import rule

_MISSION = (
    "You walk into the",
    "is locked",
    "You close",
    "You put down",
    "You open",
    "You pick up",
    "You unlock",
    "You stand in",
    "You reach the goal",
    r"You pick up the \w+ ball",
)
_TIDY = (*_MISSION[:3], "You open", "You unlock", "You stand in", "You reach", "You pick up", "You put down")
_ORDERS = {"put things down": _TIDY}
"""Captions from worst to best, by words of the goal; other goals use the mission's order."""


@rule("captions", "ab356507d5d42cda")
def captions(prompt: str, options: tuple[str, ...]) -> str:
    """Say which of two captions of DoorKey or KeyCorridor is nearer to the goal: 1, 2 or none.

    It takes the goal to be the mission, unless it is to put things down.
    """
    goals = re.findall(r"^An agent's goal: ?(.*)$", prompt, re.MULTILINE)
    goal = goals[-1] if goals else ""  # a blank prompt names none
    first, second = (re.findall(rf"^{head}: ?(.*)$", prompt, re.MULTILINE)[-1] for head in ("1", "2"))
    order = next((own for words, own in _ORDERS.items() if words in goal), _MISSION)
    ranks = [
        max((i for i, words in enumerate(order) if re.search(words, caption)), default=-1)
        for caption in (first, second)
    ]
    return options[2 if ranks[0] == ranks[1] else 0 if ranks[0] > ranks[1] else 1]
