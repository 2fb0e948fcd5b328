"""Several runs of one process that ask a model together.

Each run has a thread of its own. What it wants written waits until every other run waits too, or has ended;
then the model is asked once for all of them. A model that writes many prompts at once is so used at its best
by runs that each have few, such as the seeds of one comparison.

The answers are those that each run would get alone, as far as the model answers each prompt by itself
(:mod:`hunch.lm.base`). Each run has its own meter and budget.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, TypeVar

from hunch.core import FloatArray
from hunch.lm import budget, registry, usage
from hunch.lm.base import ONE_LINE, Float32Array, LanguageModel, Model, OptionScores, Sampling
from hunch.lm.registry import Backend

T = TypeVar("T")
COUNTERS: Final = ("tokens_read", "tokens_written", "retries", "refusals")
"""What a model counts by itself; the share of a run is that of its prompts."""


@dataclass(eq=False)
class Call:
    """What one run waits for.

    Attributes:
        asked: The model, and all arguments but the prompts.
        texts: The answer, once it is there.
        error: Why there is none.
    """

    seat: Seat
    prompts: Sequence[str]
    asked: tuple[int, int, Sampling, int]
    texts: list[list[str]] | None = None
    error: BaseException | None = None


@dataclass(eq=False)
class Table:
    """Where runs sit that ask together.

    Attributes:
        present: How many runs have not ended.
        waiting: What they wait for.
    """

    present: int
    waiting: list[Call] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    _models: dict[str, tuple[Backend, LanguageModel]] = field(default_factory=dict)

    def build(self, spec: str, options: Mapping[str, Any]) -> tuple[Backend, LanguageModel]:
        """Give a run its seat at a model, which is built once for all."""
        key = f"{spec} {sorted(options.items())}"
        with self.changed:
            if key not in self._models:
                self._models[key] = registry.build(spec, options)
            backend, model = self._models[key]
        return backend, Seat(model, self)

    def ask(self, call: Call) -> list[list[str]]:
        """Wait for the answer to a call.

        Raises:
            Exception: what the model raised, in every run that asked with it.
        """
        with self.changed:
            self.waiting.append(call)
            self._answer_if_all_wait()
            self.changed.wait_for(lambda: call.texts is not None or call.error is not None)
        if call.error is not None:
            raise call.error
        assert call.texts is not None
        return call.texts

    def leave(self) -> None:
        """A run has ended: the others do not wait for it."""
        with self.changed:
            self.present -= 1
            self._answer_if_all_wait()

    def _answer_if_all_wait(self) -> None:
        if not self.waiting or len(self.waiting) < self.present:
            return
        # By what is asked, then by the run, so that the order does not hang on which thread was first.
        calls = sorted(self.waiting, key=lambda call: (repr(call.asked), call.seat.number))
        for _, same in groupby(calls, key=lambda call: call.asked):
            _answer(list(same))
        self.waiting.clear()
        self.changed.notify_all()


def _answer(calls: Sequence[Call]) -> None:
    """Ask a model for several runs at once, and share out the answers."""
    model, (_, k, sampling, first) = calls[0].seat.model, calls[0].asked
    before = [getattr(model, name, 0) for name in COUNTERS]
    try:
        texts = model.generate([p for call in calls for p in call.prompts], k, sampling, first)
    except Exception as error:  # it is the runs' to handle, each in its thread
        for call in calls:
            call.error = error
        return
    for call in calls:
        call.texts, texts = texts[: len(call.prompts)], texts[len(call.prompts) :]
    prompts = sum(len(call.prompts) for call in calls)
    for name, earlier in zip(COUNTERS, before, strict=True):
        grown = getattr(model, name, 0) - earlier
        for call in calls:
            call.seat.count(name, grown * len(call.prompts) // prompts)


class Seat(Model):
    """A model as one of several runs has it."""

    def __init__(self, model: LanguageModel, table: Table) -> None:
        self.model, self.table, self.number = model, table, _PLACE.get()
        self.name, self.revision = model.name, model.revision
        self.verbs, self.evidence, self.dim = model.verbs, model.evidence, model.dim
        self.context, self.count_tokens = model.context, model.count_tokens  # type: ignore[method-assign]
        self.parameters = getattr(model, "parameters", 0)
        self.told = getattr(model, "told", "")
        self.price_in, self.price_out = usage.prices(model)
        self.retries = self.refusals = 0

    def count(self, name: str, more: int) -> None:
        """Count this run's share."""
        setattr(self, name, getattr(self, name) + more)

    def generate(
        self, prompts: Sequence[str], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k continuations of each prompt, once every run waits."""
        return self.table.ask(Call(self, prompts, (id(self.model), k, sampling, first)))

    def score(self, prompts: Sequence[str], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        """Score at once, one run after the other."""
        return self._alone(lambda: self.model.score(prompts, options))

    def label(self, prompts: Sequence[str], labels: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Label at once, one run after the other."""
        return self._alone(lambda: self.model.label(prompts, labels))

    def embed(self, texts: Sequence[str]) -> Float32Array:
        """Embed at once, one run after the other."""
        return self._alone(lambda: self.model.embed(texts))

    def _alone(self, ask: Callable[[], T]) -> T:
        with self.table.changed:
            before = {name: getattr(self.model, name, 0) for name in COUNTERS}
            answers = ask()
            for name, earlier in before.items():
                self.count(name, getattr(self.model, name, 0) - earlier)
        return answers


_PLACE: contextvars.ContextVar[int] = contextvars.ContextVar("place", default=0)


def together(runs: Sequence[Callable[[], None]]) -> None:
    """Do runs in a thread each; the models that they load are asked for all together.

    Args:
        runs: What each does, from loading its models on; it must not raise.
    """
    table = Table(len(runs))
    with _built_by(table.build):
        threads = [
            threading.Thread(target=_sit, args=(table, place, run), name=f"run-{place}")
            for place, run in enumerate(runs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _sit(table: Table, place: int, run: Callable[[], None]) -> None:
    """Do one run, with meter and budget of its own."""
    _PLACE.set(place)
    usage.count_apart()
    budget.check_apart()
    try:
        run()
    finally:
        table.leave()


@contextmanager
def _built_by(build: Callable[..., tuple[Backend, LanguageModel]]) -> Iterator[None]:
    registry.builds.append(build)
    try:
        yield
    finally:
        registry.builds.remove(build)
