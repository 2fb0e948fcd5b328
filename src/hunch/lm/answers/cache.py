"""A model with a cache and a meter, as :func:`hunch.lm.load` returns it.

Answers are looked up in memory, then on disk, and only then requested from the model. A model in this process
is asked a few questions at a time, and each part is stored at once; a model over a network returns its
answers as they arrive. The key of a sampled answer includes its sample index, so k samples stay k samples.

If several threads or processes share a file and need the same answer, one asks and the others wait
(:mod:`hunch.lm.answers.leases`). If two ask after all, both use the answer that is stored first. A model in
this process that only embeds takes no leases: its answers are the same, and two seldom ask at one moment.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hunch.lm.answers.memory import Memory
from hunch.lm.answers.question import Answering, Question
from hunch.lm.answers.speaking import ask
from hunch.lm.answers.store import Source, Store
from hunch.lm.answers.stored import decode, encode
from hunch.lm.answers.table import Key
from hunch.lm.base import LanguageModel, Model, OptionScores
from hunch.lm.speech import Cut, Uncached, UncachedNumbers
from hunch.lm.usage import Metered, Usage, counters
from hunch.lm.waiting import Wait, waiting

REQUESTS_A_COMMIT = 32
REQUESTS_OVER_A_NETWORK = 256  # per batch, so that the budget is checked in between
LENGTHS_REMEMBERED = 1 << 14  # texts whose stored count of tokens is not written again
SHORTEST_WAIT, LONGEST_WAIT = 0.005, 0.1  # seconds between checks for an answer that others asked for
_LOCK = threading.Lock()  # guards meters; held for microseconds
_GATE = threading.Lock()  # held while the gate is asked
if hasattr(os, "register_at_fork"):
    for _lock in (_GATE, _LOCK):
        os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@dataclass(slots=True)
class Origins:
    """Which answers of the cache were given to earlier questions of one piece of work, such as an audition.

    Attributes:
        part: The part of the work that is under way, such as a role.
        repeats: Requests so far that the model had answered in the same part.
        shared: Requests so far that it had answered in another part.
    """

    part: int = 0
    repeats: int = 0
    shared: int = 0
    _asked_in: dict[Question, int] = field(default_factory=dict)

    def count(self, asked: Sequence[Question], fresh: set[Question]) -> None:
        """Count requests, of which the model was asked those in ``fresh``."""
        for question in asked:
            if question in fresh:
                self._asked_in[question] = self.part
                fresh.remove(question)  # the next one is a repeat
            elif question in self._asked_in:
                same = self._asked_in[question] == self.part
                self.repeats += same
                self.shared += not same


class Cached(Answering, Metered):
    """A language model with a cache: an equal request is sent to the model only once.

    Attributes:
        model: The wrapped model.
        store: The file of answers on disk; None for memory only.
        unfinished: Questions whose answers have no known end: more tokens may make them whole.
        origins: Counts which answers of the cache are repeats; None where nobody asks.

    Its other attributes are those of the model, see :class:`hunch.lm.base.Model`.
    """

    def __init__(
        self, model: LanguageModel, store: Store | None = None, memory: Memory | None = None
    ) -> None:
        super().__init__()
        self.model, self.store = model, store
        self.name, self.revision = model.name, model.revision
        self.verbs, self.evidence, self.dim = model.verbs, model.evidence, model.dim
        self.context = model.context
        self.answer_tokens: int = getattr(model, "answer_tokens", 0)
        self.thinks: bool | None = getattr(model, "thinks", None)
        self.speaks = getattr(model, "speaks", True)
        self.takes: frozenset[str] = getattr(model, "takes", frozenset())
        self.best_way: str | None = getattr(model, "best_way", None)
        self.unfinished: set[Question] = set()
        self.origins: Origins | None = None
        self._memory = Memory() if memory is None else memory
        self._asking = 0
        self._counted = Usage()
        # Estimates need no tokenizer, and are not stored.
        self._tokenizes = getattr(type(model), "count_tokens", None) is not Model.count_tokens
        self._lengths_stored: set[str] = set()
        self._loading: Usage = getattr(model, "loading", Usage())

    def __deepcopy__(self, memo: object) -> Cached:
        """Return the model itself: its answers never change, and copies of an agent share its meter."""
        return self

    def take_loading(self) -> Usage:
        """Return the usage while the model was loaded on the first call, and an empty usage afterwards."""
        loading, self._loading = self._loading, Usage()
        return loading

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, estimated if the model's tokenizer is not available.

        What a tokenizer counts is stored beside the answers. Prompts are cut by it, so that recorded answers
        could not be found again without it.
        """
        tokens = self.model.count_tokens(text)
        if self._tokenizes and self.store is not None and text not in self._lengths_stored:
            self._write(self.store, {Question("count", (text,)): tokens}, context=self.context)
            if len(self._lengths_stored) >= LENGTHS_REMEMBERED:
                self._lengths_stored.clear()  # what is counted again is looked up in the file
            self._lengths_stored.add(text)
        return tokens

    def holds(self, question: Question) -> bool:
        """Return whether an answer is stored, so that the model need not be asked."""
        return bool(self._memory.find([question]) or self._stored([question]))

    def _answers(self, asked: list[Question]) -> dict[Question, Any]:
        """Find all answers: in memory, on disk, or from the model."""
        known = self._memory.find(asked)
        missing = [question for question in dict.fromkeys(asked) if question not in known]
        known |= self._stored(missing)
        fresh, pause = set[Question](), SHORTEST_WAIT
        while missing := [question for question in missing if question not in known]:
            new = self._asked(missing)
            known |= new
            fresh |= new.keys()
            others = [question for question in missing if question not in new]
            stored = self._stored(others)
            known |= stored
            if others and not (new or stored):
                time.sleep(pause)
            pause = SHORTEST_WAIT if new or stored else min(2 * pause, LONGEST_WAIT)
        self._count(Usage(cache_hits=len(asked) - len(fresh)))
        if self.origins is not None:
            self.origins.count(asked, fresh)
        return known

    def _asked(self, missing: list[Question]) -> dict[Question, Any]:
        """Ask the model the questions that no other process is asking, in batches."""
        answers: dict[Question, Any] = {}
        most = getattr(self.model, "at_once", {}).get(missing[0].verb, REQUESTS_A_COMMIT)
        if hasattr(self.model, "stream"):
            most = REQUESTS_OVER_A_NETWORK
        with waiting(self.name, len(missing), lambda: getattr(self.model, "tokens_written", 0)) as wait:
            for start in range(0, len(missing), most):
                with self._mine(missing[start : start + most]) as mine:
                    answers |= self._fresh(mine, wait)
        return answers

    @contextmanager
    def _mine(self, questions: list[Question]) -> Iterator[list[Question]]:
        """Hold leases on the questions that no other process is asking."""
        embeds_here = self.verbs <= {"embed", "see"} and not hasattr(self.model, "stream")
        if self.store is None or embeds_here:
            yield questions
            return
        keys = {self._key(question): question for question in questions}
        holder, taken = self.store.leases.claim(list(keys))
        try:
            yield [keys[key] for key in taken]
        finally:
            self.store.leases.release(holder)

    def _stored(self, questions: Sequence[Question]) -> dict[Question, Any]:
        if self.store is None or not questions:
            return {}
        keys = {self._key(question): question for question in questions}
        answers, unreadable = {}, []
        for key, value in self.store.read(list(keys)).items():
            try:
                answers[keys[key]] = decode(keys[key].verb, value)
            except ValueError:
                unreadable.append(key)
        if unreadable:
            self.store.remove(unreadable)  # while it is there, nobody would ask again
        return self._remember(answers)

    def _fresh(self, questions: list[Question], wait: Wait) -> dict[Question, Any]:
        """Ask the model; questions that another process answered in the meantime are skipped.

        Args:
            questions: The questions.
            wait: Counts the answers, for whoever watches.
        """
        answers: dict[Question, Any] = {}
        if not questions:
            return answers
        self._let_through(len(questions))
        with _LOCK:
            if not self._asking:
                self._counted = counters(self.model)
            self._asking += 1  # threads; meanwhile _count adds the model's own counters
        start, begun = time.perf_counter(), set[Question]()
        try:
            for part in self._arriving(questions, begun):
                wait.answered += len(part)
                embedded = sum(question.verb == "embed" for question in part)
                self._count(Usage(texts_embedded=embedded, seconds=time.perf_counter() - start))
                answers |= self._keep(part)
                self._let_through(0)
                start = time.perf_counter()
        finally:
            self._count(Usage(seconds=time.perf_counter() - start), len(questions) - len(begun))
            begun.update(questions)
            with _LOCK:
                self._asking -= 1
        return answers

    def _let_through(self, requests: int) -> None:
        """Ask the gate, one thread at a time, because requests under way count as well."""
        with _GATE:
            if self.gate:
                self.gate(requests)
            self.in_flight += requests

    def _arriving(self, questions: list[Question], begun: set[Question]) -> Iterator[dict[Question, Any]]:
        """Yield the model's answers, some at a time; ``begun`` collects the questions that were sent."""
        stream = getattr(self.model, "stream", None)
        if stream:
            yield from stream(questions, partial(self._attempt, begun))
            return
        if questions[0].verb == "embed":
            answers: Sequence[Any] = list(self.model.embed([question.request[0] for question in questions]))
        else:
            answers = ask(self.model, questions)
        # Counted first: the gate may stop the run once the answers are in.
        begun.update(questions)
        self._count(Usage(calls=len(questions)), len(questions))
        yield dict(zip(questions, answers, strict=True))

    def _attempt(self, begun: set[Question], question: Question) -> bool:
        """Count an attempt, or return True if the answer is on disk by now.

        Each attempt asks the gate, in place of what its batch was allowed, since that may have spent much.
        """
        if self._stored([question]):
            return True
        self._count(Usage(), question not in begun)
        begun.add(question)
        self._let_through(1)
        self._count(Usage(calls=1), 1)
        return False

    def _keep(self, answers: dict[Question, Any]) -> dict[Question, Any]:
        """Store answers at once; if another process was first, its answer is used."""
        passing: dict[Question, Any] = {}  # answers that are used once
        for asked, answer in answers.items():
            if isinstance(answer, Uncached):
                passing[asked] = str(answer)
                if isinstance(answer, Cut) or answer.strip():
                    self.unfinished.add(asked)
            elif isinstance(answer, UncachedNumbers):
                passing[asked] = answer.numbers
            elif answer is None:  # a decision that was not made may be made another time
                passing[asked] = None
        answers = {asked: answer for asked, answer in answers.items() if asked not in passing}
        if self.store is not None and answers:
            for question, value in self._write(self.store, answers).items():
                with suppress(ValueError):  # it is removed when it is looked up
                    answers[question] = decode(question.verb, value)
        return passing | self._remember(answers)

    def _write(self, store: Store, answers: dict[Question, Any], **about: Any) -> dict[Question, str]:
        """Store answers to questions of one kind; return those, as JSON, that another process stored before.

        Args:
            store: The file.
            answers: The answers.
            about: What an export shall say beside the request and the evidence level.
        """
        keys = {self._key(question): question for question in answers}
        origin = getattr(self.model, "told", "")
        source = Source(next(iter(answers)).verb, self.name, self.revision, origin)
        values = {key: encode(question.verb, answers[question]) for key, question in keys.items()}
        # in full for exports, since the key is only a hash
        about["evidence"] = self.evidence
        full = {key: json.dumps({"request": q.request, **about}) for key, q in keys.items()}
        return {keys[key]: value for key, value in store.write(values, source, full).items()}

    def _remember(self, answers: dict[Question, Any]) -> dict[Question, Any]:
        """Keep answers in memory, read-only, so that later callers get them unchanged."""
        for value in answers.values():
            scores = isinstance(value, OptionScores)
            for array in (value.logprobs, value.tokens, value.words) if scores else (value,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
        self._memory.keep(answers)
        return answers

    def _count(self, asked: Usage, done: int = 0) -> None:
        """Add usage to the meter, with the increase of the model's own counters; ``done`` requests ended."""
        with _LOCK:
            if self._asking:
                now = counters(self.model)
                asked, self._counted = asked + (now - self._counted), now
            self.usage.add(asked)
            self.in_flight -= done

    def _key(self, question: Question) -> Key:
        full = json.dumps([self.name, self.revision, question.verb, question.request])
        return hashlib.sha256(full.encode()).hexdigest(), question.sample
