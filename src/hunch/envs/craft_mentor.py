"""``scripted:mentor``: picks sub-goals of the craft world that suit the player, given a summary of the
player.

Without a summary it names any achievement. Dial: ``error``, the share of its lines that are another option.
"""

from __future__ import annotations

import re

from hunch.core import UsageError
from hunch.envs.craft import RULES
from hunch.lm.backends.sampling import listed_options, sample_rng
from hunch.lm.backends.scripted import RuleWriter
from hunch.lm.rules import writer

LEVELS = {"new": (0, 6), "basics": (4, 11), "experienced": (9, 16), "expert": (14, 22)}
"""Range of achievements in the order of recipes, by a word of the summary."""


@writer("mentor", dials=("error",))
class MentorModel(RuleWriter):
    """Writes three sub-goals, given the summary in the prompt.

    Raises:
        UsageError: if the dial is not from 0 to 1.
    """

    def __init__(self, error: float = 0.0) -> None:
        if not 0 <= error <= 1:
            raise UsageError("The dial of scripted:mentor must be from 0 to 1.")
        self.error, self.name, self.revision = error, "scripted:mentor", f"1:{error}"

    def answer(self, prompt: str, sample: int) -> str:
        """Return up to three sub-goals."""
        rng, options = sample_rng(prompt, "mentor", sample), listed_options(prompt)
        known = [goal for goal in suited(prompt) if goal in options] or list(options)
        chosen = [known[i] for i in rng.permutation(len(known))[:3]]
        lines = [options[rng.integers(len(options))] if rng.random() < self.error else x for x in chosen]
        return "\n".join(f"- {line}" for line in lines)


def suited(prompt: str) -> list[str]:
    """Return the achievements that suit the player in a summary; all achievements without a summary."""
    summary = re.findall(r"^Summary: (.*)$", prompt, re.MULTILINE)
    low, high = next((span for word, span in LEVELS.items() if summary and word in summary[-1]), (0, 22))
    return [rule.action for rule in RULES[low:high]]
