"""Hears what a model says in a role: counts answers of no use, and says what an answer has to be."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Final

from hunch.core import HunchError, HunchWarning
from hunch.lm.settings import PATIENCE as PATIENCE
from hunch.lm.usage import Metered

SILENT: Final = 20
"""Answers in a row without a usable one after which there is a warning."""
USELESS: Final = 0.9
"""Share of useless answers above which a long row of them stops a run. A small model that knows its game may
err in long rows."""
SHOWN: Final = 120
"""Characters of an answer that a message quotes."""
ANSWERS: Final = {
    "prior": "has to name an action of the list",
    "judge": "has to say yes or no",
    "preference": "has to be 1, 2 or none",
    "goal": "has to name things of the list, one per line",
    "planner": "has to name a skill of the list",
    "policy": "has to name an action of the list, the last one if there are several questions",
    "world-model": "has to go on in the form of the examples",
    "reader": "has to be a JSON object with one of the possible values of each key",
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


def count_fallbacks(
    model: object,
    answers: Iterable[tuple[str, bool]],
    patience: int | None = PATIENCE,
    abstained: int = 0,
    role: str = "prior",
) -> None:
    """Count answers that were of no use on the model's meter, and notice a model that says nothing.

    Args:
        model: The model; nothing is counted if it has no meter.
        answers: Its answers in order, each with whether it was usable: it named an option, or is an
            abstention that the role allows.
        patience: Answers in a row without a usable one after which the run stops, if all of them were
            empty or most of all answers so far were of no use; None for no limit.
        abstained: Number of allowed abstentions among the usable answers, which count as fallbacks too.
        role: The role that the model fills, :data:`ANSWERS`.

    Raises:
        HunchError: if there are so many.
    """
    if not isinstance(model, Metered):
        return
    model.usage.fallbacks += abstained
    heard = model.heard
    heard.useless += abstained
    for text, usable in answers:
        heard.answers += 1
        heard.unusable_in_row = 0 if usable else heard.unusable_in_row + 1
        heard.mute = 0 if text.strip() else heard.mute + 1
        if usable:
            continue
        heard.useless += 1
        model.usage.fallbacks += 1
        row = heard.unusable_in_row if model.speaks else 0
        model.usage.silent += SILENT if row == SILENT else row > SILENT
        hopeless = heard.mute >= row or heard.useless > USELESS * heard.answers
        if patience is not None and row >= patience and hopeless:
            raise HunchError(f"{_row(model, text)}, so the run stops: {remedy(role)}.")
        if row == model.usage.silent == SILENT:  # the first such row; later ones are in the figure
            warnings.warn(f"{_row(model, text)}: {remedy(role)}.", HunchWarning, stacklevel=3)


def show(model: object, role: str, answers: Sequence[str], read: Sequence[object]) -> None:
    """Tell the model's ``listener``, if it has one, each answer and what a role read in it, if anything."""
    if listener := getattr(model, "listener", None):
        for answer, meaning in zip(answers, read, strict=True):
            listener(role, answer, meaning)


def _row(model: Metered, text: str) -> str:
    """Return in words how many answers in a row were of no use, with the last one."""
    said = f"such as {text.strip()[:SHOWN]!r}" if text.strip() else "the last one empty"
    name = getattr(model, "name", "the model")
    return f"{model.heard.unusable_in_row} answers of {name} in a row could not be used, {said}"
