"""``scripted:suggest``: names goals of the craft world that can be reached now and are new.

Dials: ``error``, the share of lines that are another random option; ``lasting``, the share of goals in whose
place it always names the same other option, drawn by ``draw``; ``refusal`` and ``malformed``, the shares of
answers that decline, or name no existing option.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hunch.core import UsageError
from hunch.envs.craft import MOST, RULES, Rule
from hunch.lm.backends.sampling import listed_options, sample_rng
from hunch.lm.backends.scripted import REFUSAL, RuleWriter
from hunch.lm.rules import writer


@writer("suggest", dials=("error", "refusal", "malformed", "lasting", "draw"))
class Suggester(RuleWriter):
    """Writes a list of goals, according to the recipes of :mod:`hunch.envs.craft`.

    Raises:
        UsageError: if a dial is not from 0 to 1, or they sum to more than 1.
    """

    def __init__(
        self,
        error: float = 0.0,
        refusal: float = 0.0,
        malformed: float = 0.0,
        lasting: float = 0.0,
        draw: float = 0,
    ) -> None:
        shares = (error, refusal, malformed, lasting)
        if not all(0 <= share <= 1 for share in shares) or refusal + malformed > 1:
            raise UsageError("The dials of scripted:suggest must be from 0 to 1.")
        self.error, self.refusal, self.malformed = error, refusal, malformed
        self.lasting, self.draw = lasting, int(draw)
        self.name = "scripted:suggest"
        self.revision = f"1:{error},{refusal},{malformed}" + (f",{lasting},{draw}" if lasting else "")

    def answer(self, prompt: str, sample: int) -> str:
        """Return a list of goals."""
        rng = sample_rng(prompt, "suggest", sample)
        draw = rng.random()
        if draw < self.refusal:
            return REFUSAL
        if draw < self.refusal + self.malformed:
            return "- {}\n- ???"
        options = listed_options(prompt)
        goals = [self._taken_for(goal, options) for goal in sensible(prompt) if goal in options]
        lines = [options[rng.integers(len(options))] if rng.random() < self.error else goal for goal in goals]
        return "\n".join(f"- {line}" for line in lines)

    def _taken_for(self, goal: str, options: Sequence[str]) -> str:
        """Return the goal, or the other option that always stands in its place."""
        rng = sample_rng(goal, "lasting", self.draw)
        return str(rng.choice(options)) if rng.random() < self.lasting else goal


def sensible(prompt: str) -> list[str]:
    """Return the possible actions in the last observation of a prompt, the rarest first."""
    seen = set(", ".join(re.findall(r"^You see (.*)\.$", prompt, re.MULTILINE)[-1:]).split(", "))
    had = ", ".join(re.findall(r"^You have (.*)\.$", prompt, re.MULTILINE)[-1:])
    held = {thing: int(n) for n, thing in re.findall(r"(\d) ([a-z ]+)", had)}
    needs = set(", ".join(re.findall(r"^You are ((?!in the).*)\.$", prompt, re.MULTILINE)[-1:]).split(", "))
    return [rule.action for rule in reversed(RULES) if _works(rule, seen, held, needs)]


def _works(rule: Rule, seen: set[str], held: dict[str, int], needs: set[str]) -> bool:
    return (
        (not rule.source or rule.source in seen)
        and (not rule.tool or rule.tool in held)
        and seen.issuperset(rule.near)
        and all(held.get(thing, 0) >= n for thing, n in rule.uses)
        and (not rule.gives or held.get(rule.gives, 0) < (1 if rule.action[:4] == "make" else MOST))
        and (not rule.puts or rule.puts not in seen)
        and (not rule.need or rule.need in needs)
    )
