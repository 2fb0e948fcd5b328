"""``scripted:examiner``: a rule that plans in SecretProperty from the reports."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hunch.lm.rules import rule


@rule("examiner", "e113e698eeab7cdb")
def examiner(prompt: str, options: tuple[str, ...]) -> str:
    """Examine what has to be known, and pick up what follows; a report is believed."""
    task, *lines = prompt.splitlines()
    known = _reported(lines)
    if asked := re.search(r"If the (\w+) is good, pick up the (\w+), otherwise pick up the (\w+)", task):
        thing, yes, no = asked.groups()
        best = f"examine the {thing}" if thing not in known else f"pick up the {yes if known[thing] else no}"
        return best if best in options else options[0]
    things = [option.rpartition(" ")[2] for option in options if option.startswith("examine the ")]
    good = next((thing for thing in things if known.get(thing)), None)
    left = [thing for thing in things if thing not in known]
    if good or len(left) == 1:  # by exclusion
        return f"pick up the {good or left[0]}"
    return f"examine the {left[0]}" if left else options[0]


def _reported(lines: Sequence[str]) -> dict[str, bool]:
    """What was last said of each thing that was examined."""
    known: dict[str, bool] = {}
    thing = ""
    for line in lines:
        if line.startswith("> "):
            thing = line.rpartition(" ")[2] if line.startswith("> examine the ") else ""
        elif thing and line in ("It is good.", "It is bad."):
            known[thing] = line == "It is good."
    return known
