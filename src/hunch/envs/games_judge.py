"""``scripted:judge``: a rule that knows the objectives of the one-move environments.

Without an objective in the prompt it knows nothing, and answers by a hash of the prompt.
"""

from __future__ import annotations

import re

from hunch.envs.games import CONCEPTS, JOINT, Rule, good_outcomes, wanted
from hunch.lm.backends.sampling import sample_rng
from hunch.lm.rules import rule

_PAYOFFS = re.compile(r"P1 gets (-?\d+), P2 gets (-?\d+)\.")


@rule("judge", "b72bafbc963b7d76")
def judge(prompt: str, options: tuple[str, ...]) -> str:
    """Say whether the outcome meets the objective of a matrix game or an Ultimatum."""
    verdict = _matrix(prompt) if "Outcome: P1" in prompt else _ultimatum(prompt)
    if verdict is None:
        verdict = bool(sample_rng(prompt, "blank").integers(2))
    return options[0 if verdict else 1]


def _matrix(prompt: str) -> bool | None:
    concept = next((name for name, words in CONCEPTS.items() if words in prompt), None)
    if concept is None:
        return None
    payoffs = tuple((int(one), int(other)) for one, other in _PAYOFFS.findall(prompt)[: len(JOINT)])
    first, second = re.findall(r"Outcome: P1 takes (\d), P2 takes (\d)", prompt)[-1]
    return JOINT.index(f"{first} and {second}") in good_outcomes(payoffs, concept)


def _ultimatum(prompt: str) -> bool | None:
    match = re.search(r"what you get is (?:less than ([\d.]+)%|less than \$([\d.]+)|not half)", prompt)
    split = re.findall(r"keeps \$([\d.]+) and you get \$([\d.]+)\.", prompt)
    done = re.findall(r"Outcome: you (\w+)", prompt)
    if match is None or not split or not done:
        return None
    kind: Rule = "percentage" if match[1] else "payoff" if match[2] else "equality"
    threshold = float(match[1]) / 100 if match[1] else float(match[2] or 0)
    return bool(done[-1] == wanted(kind, threshold, *map(float, split[-1])))
