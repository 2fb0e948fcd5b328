"""The meter: counts the use of a language model and its cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Usage:
    """Usage so far. A request is one sample of a prompt, the options of one prompt, or one text.

    Attributes:
        calls: Requests that reached the model.
        cache_hits: Requests answered from memory or disk, and repeats within one batch.
        texts_embedded: The calls that embedded a text.
        prompt_tokens: Tokens that the model read, if it counts them.
        completion_tokens: Tokens that the model wrote, if it counts them.
        seconds: Wall-clock time in the model, in seconds.
        retries: Failed attempts that were repeated, for a model behind a network.
        refusals: Answers that are empty or that the server marked as refused.
        shortened: Prompts that were longer than the model reads, so that a part was left out.
        fallbacks: Answers, including cached ones, in which no allowed option could be read.
        silent: The fallbacks in series of at least :data:`hunch.lm.settings.SILENT`.
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
    shortened: int = 0

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


@dataclass(slots=True)
class Heard:
    """Counts of usable and useless answers of a model so far.

    Attributes:
        answers: Number of answers.
        useless: Number of useless answers, and of allowed abstentions.
        unusable_in_row: Number of the latest successive answers that were useless.
        mute: Number of the latest successive answers that were empty.
    """

    answers: int = 0
    useless: int = 0
    unusable_in_row: int = 0
    mute: int = 0


@dataclass(slots=True)
class FirstAnswers:
    """How roles ask a model, and its first answers as they were read; for whoever watches a run.

    Attributes:
        ways: The way of asking by role (:mod:`hunch.lm.ways`).
        automatic: The roles whose way was not set but chosen for the model.
        answers: The first answers by role, each with what was read in it; None if nothing.
    """

    ways: dict[str, str] = field(default_factory=dict)
    automatic: set[str] = field(default_factory=set)
    answers: dict[str, list[tuple[str, str | None]]] = field(default_factory=dict)


class Metered:
    """Base class of models with a meter, the interface that a run needs to count their use.

    Attributes:
        usage: The meter. For a trained model one call is a text that is written or judged, the options
            of a prompt, or a prompt whose state is read; seconds are those of forward passes, not gradients.
        gate: Called with the number of requests before they reach the model; it may raise an error to refuse
            them, as a budget does. Called with 0 after answers were counted.
        in_flight: Number of requests that passed the gate and are not counted yet.
        heard: Counts of usable and useless answers.
        first_answers: How roles ask, and the first answers as they were read.
        speaks: False for a stand-in that answers at random, so that useless answers are expected.
    """

    gate: Callable[[int], None] | None = None
    in_flight: int = 0
    speaks: bool = True

    def __init__(self) -> None:
        self.usage, self.heard = Usage(), Heard()
        self.first_answers = FirstAnswers()

    @contextmanager
    def counted(self, calls: int, read: int = 0) -> Iterator[Usage]:
        """Count calls that read ``read`` tokens; the block can add the tokens written to the usage."""
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
    """Return the model's own counters so far: tokens, their cost, retries and refusals."""
    read, written, retries, refusals, shortened = (
        getattr(model, name, 0)
        for name in ("tokens_read", "tokens_written", "retries", "refusals", "shortened")
    )
    price_in, price_out = prices(model)
    return Usage(
        prompt_tokens=read,
        completion_tokens=written,
        retries=retries,
        refusals=refusals,
        cost=(read * price_in + written * price_out) / 1e6,
        shortened=shortened,
    )
