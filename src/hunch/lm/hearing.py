"""Counts useless answers of a model in a role, and describes the answers that each role needs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from hunch.core import FloatArray, HunchError, HunchWarning
from hunch.lm.settings import PATIENCE as PATIENCE
from hunch.lm.settings import SILENT as SILENT
from hunch.lm.usage import Metered

USELESS: Final = 0.9
"""Share of useless answers above which a long series of them stops a run (ours). A small model that
knows its game may fail in long series."""
SHOWN: Final = 120
"""Maximum characters of an answer that a message quotes."""
NOTED: Final = 3
"""Number of first answers that are noted for whoever watches a run."""
LIKELIEST: Final = 3
"""Number of the most probable options that a noted choice names."""
ANSWERS: Final = {
    "prior": "has to name an action of the list",
    "judge": "has to say yes or no",
    "preference": "has to be 1, 2 or none",
    "goal": "has to name things of the list, one per line",
    "planner": "has to name a skill of the list",
    "policy": "has to be an action in the form that the environment asks for, or one of its list",
    "opponent": "has to be a move of the game",
    "world-model": "has to go on in the form of the examples",
    "reader": "has to be a JSON object with one of the possible values of each key",
    "reviser": "has to hold the whole revised answer in a line that begins with Revision:",
    "writer": "has to hold the whole function, best in a fence",
}
"""Requirements for an answer, by role, as messages state them."""
NOT_SHOWN: Final = ("reader", "reviser")
"""Roles that ``hunch lm SPEC --ask ROLE`` does not show."""
REMEDY: Final = "more max-tokens, or your own words as prompt, may help"


def remedy(role: str) -> str:
    """Return advice for the case that the answers of a model in a role cannot be read."""
    needed = f"an answer {ANSWERS[role]}"
    if role in NOT_SHOWN:
        return f"{needed}; {REMEDY}"
    command = f"hunch lm SPEC --ask {role} --env ID"
    return f"{needed}; '{command}' shows the prompt and how the answer is read; {REMEDY}"


def count_fallbacks(
    model: object,
    answers: Iterable[tuple[str, bool]],
    patience: int | None = PATIENCE,
    abstained: int = 0,
    role: str = "prior",
) -> None:
    """Count useless answers on the model's meter, and stop a run whose model gives no useful answers.

    Args:
        model: The model; nothing is counted if it has no meter.
        answers: The answers in order, each with whether it was usable: it named an option, or is an
            abstention that the role allows.
        patience: Number of successive useless answers after which the run stops, if all of them were
            empty or most of all answers so far were useless; None for no limit.
        abstained: Number of allowed abstentions among the usable answers; they also count as fallbacks.
        role: The role that the model fills, a key of :data:`ANSWERS`.

    Raises:
        HunchError: if there are too many useless answers.
    """
    if not isinstance(model, Metered):
        return
    model.usage.fallbacks += abstained
    heard = model.heard
    heard.useless += abstained
    for text, usable in answers:
        heard.answers += 1
        heard.unusable_in_row = 0 if usable else heard.unusable_in_row + 1
        heard.mute = 0 if usable or text.strip() else heard.mute + 1  # a letter that is scored has no text
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
    """Note the first answers, with what the role read in them, and pass all to the model's ``listener``.

    Args:
        model: The model; without a meter nothing is noted, and not every model has a listener.
        role: The role that the model fills.
        answers: The answers.
        read: What was read in each answer; None if nothing.
    """
    if isinstance(model, Metered):
        noted = model.first_answers.answers.setdefault(role, [])
        for answer, meaning in zip(answers, read, strict=True):
            if len(noted) == NOTED:
                break
            noted.append((answer, None if meaning is None else str(meaning)))
    if listener := getattr(model, "listener", None):
        for answer, meaning in zip(answers, read, strict=True):
            listener(role, answer, meaning)


def show_choices(
    model: object, role: str, options: Sequence[Sequence[str]], probabilities: Sequence[FloatArray]
) -> None:
    """Note the first choices of a model that gives probabilities; see :func:`show`.

    Args:
        model: The model; without a meter nothing is noted.
        role: The role that the model fills.
        options: The options of each choice.
        probabilities: The probabilities of each choice, each of shape (n_options,).
    """
    if not isinstance(model, Metered):
        return
    noted = model.first_answers.answers.setdefault(role, [])
    for listed, p in zip(options, probabilities, strict=True):
        if len(noted) == NOTED:
            break
        likeliest = np.argsort(-p, kind="stable")[:LIKELIEST]
        noted.append((", ".join(f"{listed[i]} {p[i]:.2f}" for i in likeliest), listed[int(likeliest[0])]))


def note_way(model: object, role: str, way: str, *, automatic: bool = False) -> None:
    """Note in which way a role asks a model, and whether the way was chosen for the model."""
    if not isinstance(model, Metered):
        return
    first = model.first_answers
    if first.ways.get(role) != way:
        first.ways[role] = way
        first.automatic.discard(role)
    if automatic:
        first.automatic.add(role)


def _row(model: Metered, text: str) -> str:
    """Return in words how many answers in a row were of no use, with the last one."""
    said = f"such as {text.strip()[:SHOWN]!r}" if text.strip() else "the last one empty"
    name = getattr(model, "name", "the model")
    return f"{model.heard.unusable_in_row} answers of {name} in a row could not be used, {said}"
