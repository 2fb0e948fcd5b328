"""The meter: counts the use of a language model and its cost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hunch.core import HunchError, HunchWarning

SILENT: Final = 20
"""Answers in a row without a usable one after which there is a warning."""
USELESS: Final = 0.9
"""Share of useless answers above which a long row of them stops a run. A small model that knows its game may
err in long rows."""
PATIENCE: Final = 50
"""Answers in a row without a usable one after which a run stops, unless a setting says otherwise."""
SHOWN: Final = 120
"""Characters of an answer that a message quotes."""


@dataclass(slots=True)
class Usage:
    """Usage so far. One request is one sample of a prompt, the options of one prompt, or one text.

    Attributes:
        calls: Requests that reached the model.
        cache_hits: Requests answered from memory or disk, and repeats within one batch.
        texts_embedded: The calls among these that embedded a text.
        prompt_tokens: Tokens that the model read, if it counts them.
        completion_tokens: Tokens that the model wrote, if it counts them.
        seconds: Wall-clock time in the model, in seconds.
        retries: Failed attempts that were repeated, for a model behind a network.
        refusals: Answers that are empty or that the server marked as refused.
        fallbacks: Answers, including cached ones, that named none of the given options.
        silent: The fallbacks among them that belong to a row of at least :data:`SILENT`.
        cost: Cost of the tokens; 0 if the model has no price.
    """

    calls: int = 0
    cache_hits: int = 0
    texts_embedded: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    retries: int = 0
    refusals: int = 0
    fallbacks: int = 0
    cost: float = 0.0
    silent: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def __sub__(self, earlier: Usage) -> Usage:
        return Usage(*(getattr(self, name) - getattr(earlier, name) for name in self.__slots__))

    def add(self, more: Usage) -> None:
        """Add other usage in place."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(more, name))

    def as_dict(self) -> dict[str, int | float]:
        """Return all numbers by name, for JSON and for checkpoints."""
        return {name: getattr(self, name) for name in self.__slots__}

    def snapshot(self) -> Usage:
        """Return a copy that later requests do not change."""
        return self + Usage()

    def restore(self, figures: Mapping[str, int | float]) -> None:
        """Restore the numbers from :meth:`as_dict`; a missing one starts at 0."""
        for name in self.__slots__:
            setattr(self, name, figures.get(name, 0))


@dataclass(slots=True)
class Heard:
    """How usable a model's answers were so far.

    Attributes:
        answers: Number of answers.
        useless: Number of those that were of no use, and of allowed abstentions.
        unusable_in_row: Number of its latest answers in a row that were of no use.
        mute: Number of its latest answers in a row that were empty.
    """

    answers: int = 0
    useless: int = 0
    unusable_in_row: int = 0
    mute: int = 0


class Metered:
    """Base class of models with a meter, which is all that a run's ledger needs of them.

    Attributes:
        usage: The meter. For a trained model one call is a text that is written or judged, the options
            of a prompt, or a prompt whose state is read; seconds are those of forward passes, not gradients.
        gate: Called with the number of requests before they reach the model; it may raise an error to refuse
            them, as a budget does. Called with 0 after answers were counted.
        in_flight: Number of requests that passed the gate and are not counted yet.
        heard: How usable its answers were.
        patient: True while answers of no use are counted and never stop a run; see :func:`patient`.
        speaks: False for a stand-in that answers at random, and so is not expected to say anything.
    """

    gate: Callable[[int], None] | None = None
    in_flight: int = 0
    speaks: bool = True
    patient: bool = False

    def __init__(self) -> None:
        self.usage, self.heard = Usage(), Heard()

    def take_loading(self) -> Usage:
        """Return the usage while the model was loaded on the first call, and an empty usage afterwards."""
        return Usage()

    @contextmanager
    def counted(self, calls: int, read: int = 0) -> Iterator[Usage]:
        """Count calls that read ``read`` tokens; what is written can be added to the usage within."""
        if self.gate:
            self.gate(calls)
        self.in_flight += calls
        spent, start = Usage(calls=calls, prompt_tokens=read), time.perf_counter()
        try:
            yield spent
        finally:
            spent.seconds = time.perf_counter() - start
            self.in_flight -= calls
            self.usage.add(spent)
        if self.gate:
            self.gate(0)


def prices(model: object) -> tuple[float, float]:
    """Return the prices per million tokens read and written; 0 if the model has no price."""
    behind = getattr(model, "model", None)  # of a cache
    price_in, price_out = (
        float(getattr(model, name, None) or getattr(behind, name, None) or 0)
        for name in ("price_in", "price_out")
    )
    return price_in, price_out


def counters(model: object) -> Usage:
    """Return the model's own counters so far: tokens, their cost, retries, refusals."""
    read, written, retries, refusals = (
        getattr(model, name, 0) for name in ("tokens_read", "tokens_written", "retries", "refusals")
    )
    price_in, price_out = prices(model)
    return Usage(
        prompt_tokens=read,
        completion_tokens=written,
        retries=retries,
        refusals=refusals,
        cost=(read * price_in + written * price_out) / 1e6,
    )


@contextmanager
def patient(model: object) -> Iterator[None]:
    """Count answers of no use, and never stop for them, as an audition does."""
    model.patient = True  # type: ignore[attr-defined]
    try:
        yield
    finally:
        model.patient = False  # type: ignore[attr-defined]


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
        role: The role that the model fills, :data:`hunch.lm.remedies.ANSWERS`.

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
        if patience is not None and row >= patience and hopeless and not model.patient:
            raise HunchError(f"{_row(model, text)}, so the run stops: {_remedy(role)}.")
        if row == SILENT:
            warnings.warn(f"{_row(model, text)}: {_remedy(role)}.", HunchWarning, stacklevel=3)


def show(model: object, role: str, answers: Sequence[str], read: Sequence[object]) -> None:
    """Tell the model's ``listener``, if it has one, each answer and what a role read in it, if anything."""
    if listener := getattr(model, "listener", None):
        for answer, meaning in zip(answers, read, strict=True):
            listener(role, answer, meaning)


def _remedy(role: str) -> str:
    from hunch.lm.remedies import remedy

    return remedy(role)


def _row(model: Metered, text: str) -> str:
    """Return in words how many answers in a row were of no use, with the last one."""
    said = f"such as {text.strip()[:SHOWN]!r}" if text.strip() else "the last one empty"
    name = getattr(model, "name", "the model")
    return f"{model.heard.unusable_in_row} answers of {name} in a row could not be used, {said}"
