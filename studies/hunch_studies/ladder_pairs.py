"""Does the audition of real models foretell what a loop shows?

    python -m hunch_studies.ladder_pairs docs/assets/studies/ladder/pairs.jsonl

A pair is a role, a model, a bed with a loop, and what the model is compared with. The pairs, and what the
audition says of them, are committed before the loops run. All pairs that ran count.

Audition and loop are read by the same rule: ahead, or not shown to be. "Ahead" is a 95 % interval of the
paired lead that is above zero.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hunch.rl.success import over_episodes
from hunch_studies.planners import table

Pair = Mapping[str, Any]
"""``role``, ``rung``, ``way``, ``bed``, ``over``, ``command``; ``audition``: the lead [value, low, high] in
the ladder, of ``questions``; ``loop``: the lead that the loop measured, or null where it has not run."""


def ahead(lead: Sequence[float]) -> bool:
    """Return whether a lead is shown: its 95 % interval is above zero."""
    return lead[1] > 0


def kappa(said: Sequence[bool], came: Sequence[bool]) -> float:
    """Return Cohen's kappa: agreement beyond what two raters with these rates would have by chance.

    nan where both always say the same, because then every agreement may be by chance.
    """
    n = len(said)
    agreed = sum(a == b for a, b in zip(said, came, strict=True)) / n
    yes_said = sum(said) / n
    yes_came = sum(came) / n
    by_chance = yes_said * yes_came + (1 - yes_said) * (1 - yes_came)
    return float("nan") if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)


def page(pairs: Sequence[Pair]) -> str:
    """Return the table of pairs, and the share of those that ran in which the audition was right."""
    ran = [pair for pair in pairs if pair["loop"] is not None]
    said = [ahead(pair["audition"]) for pair in ran]
    came = [ahead(pair["loop"]) for pair in ran]
    lines = []
    for pair in pairs:
        loop = pair["loop"]
        right = "not run" if loop is None else _yes(ahead(pair["audition"]) == ahead(loop))
        shown = "" if loop is None else _lead(loop)
        lead = f"{_lead(pair['audition'])} ({pair['questions']})"
        lines.append((pair["role"], pair["rung"], pair["bed"], pair["over"], lead, shown, right))
    shown_pairs = table("role | model | bed | over | audition (questions) | loop | right", lines)
    if not ran:
        return f"{shown_pairs}\n\nNone of {len(pairs)} pairs has run."
    rate = over_episodes([a == b for a, b in zip(said, came, strict=True)])
    counts = [
        (
            f"the loop shows a lead: {_yes(true)}",
            *(
                sum((s, c) == (value, true) for s, c in zip(said, came, strict=True))
                for value in (True, False)
            ),
        )
        for true in (True, False)
    ]
    return "\n\n".join(
        [
            shown_pairs,
            f"{len(ran)} of {len(pairs)} pairs ran; the audition is right in {rate.short()} "
            f"of them, Cohen's kappa {kappa(said, came):.2f}. The interval takes pairs "
            "for independent, which they are not: models and beds recur.",
            table(" | audition: ahead | audition: not shown", counts),
        ]
    )


def _lead(lead: Sequence[float]) -> str:
    return f"{lead[0]:.2f} [{lead[1]:.2f}, {lead[2]:.2f}]"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


if __name__ == "__main__":
    print(page([json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]))
