"""What an answer has to be in each role, for messages about answers that cannot be read."""

from typing import Final

ANSWERS: Final = {
    "prior": "has to name an action of the list",
    "judge": "has to say yes or no",
    "preference": "has to be 1, 2 or none",
    "goal": "has to name things of the list, one per line",
    "planner": "has to name a skill of the list",
    "policy": "has to name an action of the list, the last one if there are several questions",
    "world-model": "has to go on in the form of the examples",
    "writer": "has to hold the whole function, best in a fence",
}
"""What an answer has to be, by role."""


REMEDY: Final = "more max-tokens, or your own words as prompt, may help"


def remedy(role: str) -> str:
    """Return what helps if the answers of a model in a role cannot be read."""
    return (
        f"an answer {ANSWERS[role]}; 'hunch lm SPEC --ask {role} --env ID' shows the prompt and how the "
        f"answer is read; {REMEDY}"
    )
