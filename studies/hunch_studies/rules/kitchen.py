"""``scripted:kitchen``: a rule that cooks in the Overcooked environments."""

from __future__ import annotations

import re

from hunch.lm.rules import rule


@rule("kitchen", "18a0e23832eaa432")
def kitchen(prompt: str, options: tuple[str, ...]) -> str:
    """Cook the dish of the Overcooked environments: chop each food on its own board, then fill the bowl.

    It reads the last description of the kitchen in the prompt and remembers nothing.
    """
    scene = "".join(re.findall(r"there (?:is a|are two) fixed .*", prompt.lower())[-1:])
    held = "".join(re.findall(r"carrying (.*?)(?: in hand)?\.", scene))
    foods = [food for food in ("tomato", "lettuce") if any(food in option for option in options)]
    if "bowl" in held:
        missing = [food for food in foods if food not in held]
        return _naming(options, f"put the {missing[0]}") if missing else _naming(options, "serve")
    if held:
        board = "second" if "lettuce" in held else "cutting board"
        return _naming(options, board if "unchopped" in held else "bowl")
    if "unchopped" in scene:
        return _naming(options, "chop the")
    raw = [food for food in foods if f"chopped {food} is on" not in scene]
    if raw or len(foods) == 1:
        return _naming(options, f"pick up the {(raw or foods)[0]}")
    return _naming(options, "bowl")


def _naming(options: tuple[str, ...], words: str) -> str:
    """The first option with these words; the first of all where there is none."""
    return next((option for option in options if words in option), options[0])
