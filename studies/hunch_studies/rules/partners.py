"""``scripted:partner``: a rule for Say-Select that follows the instruction "select what was said"."""

from __future__ import annotations

import re

from hunch.lm.rules import rule
from hunch_studies.worlds.say_select import QUIT, WORDS


@rule("partner", "6305602d1817696b")
def partner(prompt: str, options: tuple[str, ...]) -> str:
    """Select the ball whose number the partner said last; a speaker says the number of the first good ball,
    or, if there is none, of the ball that was selected last.
    """
    said = re.findall(r"^Your partner says (\d)\.$", prompt, re.MULTILINE)
    good = re.findall(r"^Good balls: (\w+)", prompt, re.MULTILINE)[-1:]
    good = [name for name in good if name != "none"] or re.findall(
        r"^Your partner selected (\w+)\.$", prompt, re.MULTILINE
    )
    if said:
        names = {f"select {said[-1]}", f"select {WORDS[int(said[-1]) - 1]}"}
        return next((option for option in options if option in names), QUIT)
    name = good[-1] if good else ""
    number = str(WORDS.index(name) + 1) if name in WORDS else name
    return next((option for option in options if option == f"say {number}"), options[0])
