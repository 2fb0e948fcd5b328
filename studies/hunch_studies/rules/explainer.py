"""``scripted:explainer``: a rule that says in plain words what an errand of the Kitchen asks for.

It stands in the place of a model that thinks before a planner plans (SayCan with chain of thought).
"""

from __future__ import annotations

import re
from functools import cache

from hunch.envs.kitchen.errands import ERRANDS, Errand, Fact, paraphrases
from hunch.lm.rules import rule

_ASKED = re.compile(r"A person says to the robot: (.*)")


@cache
def explanations() -> dict[str, str]:
    """Return the explanation of each errand, by its text."""
    return {errand.text: _explained(errand) for errand in (*ERRANDS, *paraphrases())}


def _explained(errand: Errand) -> str:
    """Return the alternatives of an errand as plain instructions."""
    ways = [" ".join(_instruction(fact) for fact in facts) for facts in errand.goal]
    return " Or: ".join(dict.fromkeys(ways))


def _instruction(fact: Fact) -> str:
    if fact.kind == "near":
        return f"Go to the {fact.what}."
    if fact.kind == "open":
        return f"Open the {fact.what}."
    if fact.kind == "held":
        return f"Pick up the {fact.what}."
    if fact.place == "person":
        return f"Bring me the {fact.what}."
    if fact.place == "bin":
        return f"Throw away the {fact.what}."
    return f"Put the {fact.what} {'in' if fact.place == 'sink' else 'on'} the {fact.place}."


def _possible(prompt: str) -> tuple[str, ...]:
    """Return all explanations, among which the rule chooses, and its errors draw."""
    return tuple(dict.fromkeys(explanations().values()))


@rule("explainer", "5b0d2f7e91c34a68", options=_possible)
def explainer(prompt: str, options: tuple[str, ...]) -> str:
    """Explain the errand of the prompt."""
    asked = _ASKED.findall(prompt)
    explanation = explanations().get(asked[-1].strip(), "") if asked else ""
    return explanation if explanation in options else options[0]
