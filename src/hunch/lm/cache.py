"""A model behind a cache and a meter: what :func:`hunch.lm.load` returns.

Answers are looked up in memory, then on disk, and only then asked of the model, a few at a time, each part
stored as soon as it is there: a killed run loses at most the part that was being computed. Sampled answers
carry their sample index in the key, so k samples remain k samples.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any, NamedTuple

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.lm.base import ONE_LINE, Float32Array, LanguageModel, OptionScores, Sampling, Verb, choices
from hunch.lm.budget import allow
from hunch.lm.store import Key, Source, Store
from hunch.lm.usage import TOTAL, Usage, counters

REQUESTS_A_COMMIT = 32
ANSWERS_IN_MEMORY = 100_000  # about 200 MB of embeddings with 384 numbers, keys included


class Question(NamedTuple):
    """One request, hashable, and which sample of its answers is wanted."""

    verb: Verb
    request: tuple[Any, ...]
    sample: int = 0


class Cached:
    """A language model that never asks the same thing twice.

    Attributes:
        model: The model behind.
        store: Where answers are kept on disk, or None for memory only.
        usage: The meter.
        dim: Length of an embedding; 0 where the model does not embed.
    """

    def __init__(self, model: LanguageModel, store: Store | None = None, meter: Usage | None = None) -> None:
        self.model, self.store = model, store
        self.usage = Usage() if meter is None else meter
        self.name, self.revision = model.name, model.revision
        self.verbs, self.evidence, self.dim = model.verbs, model.evidence, model.dim
        self._memory: dict[Question, Any] = {}

    def generate(
        self, prompts: Sequence[str], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k continuations of each prompt: the samples first, ..., first + k - 1.

        Raises:
            UsageError: if k is below 1 or first below 0.
        """
        if k < 1 or first < 0:
            raise UsageError(f"generate needs k >= 1 and first >= 0, but got k={k} and first={first}.")
        how = astuple(sampling)
        asked = [
            [Question("generate", (prompt, how), index) for index in range(first, first + k)]
            for prompt in prompts
        ]
        known = self._answers([q for own in asked for q in own], lambda part: self._write(part, sampling))
        return [[known[question] for question in own] for own in asked]

    def score(self, prompts: Sequence[str], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        """Return how likely each of a prompt's own options is as its continuation.

        Raises:
            UsageError: if a prompt has no options, or one that is blank.
        """
        asked = [Question("score", pair) for pair in choices(prompts, options)]
        known = self._answers(
            asked, lambda part: self.model.score(*zip(*(q.request for q in part), strict=True))
        )
        return [known[question] for question in asked]

    def label(self, prompts: Sequence[str], labels: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return the log-probability of each of a prompt's labels as the very next output.

        Raises:
            UsageError: if a prompt has no labels, or one that is blank.
        """
        asked = [Question("label", pair) for pair in choices(prompts, labels)]
        known = self._answers(
            asked, lambda part: self.model.label(*zip(*(q.request for q in part), strict=True))
        )
        return [known[question] for question in asked]

    def embed(self, texts: Sequence[str]) -> Float32Array:
        """Return one vector a text, shape (len(texts), dim)."""
        asked = [Question("embed", (text,)) for text in texts]
        known = self._answers(asked, lambda part: list(self.model.embed([q.request[0] for q in part])))
        vectors = [known[question] for question in asked]
        return np.stack(vectors) if vectors else np.zeros((0, self.dim), dtype=np.float32)

    def _answers(
        self, asked: list[Question], ask: Callable[[list[Question]], Sequence[Any]]
    ) -> dict[Question, Any]:
        """Find all answers: in memory, on disk, from the model."""
        memory = self._memory
        known = {question: memory[question] for question in asked if question in memory}
        missing = [question for question in dict.fromkeys(asked) if question not in known]
        if missing and self.store is not None:
            known |= self._stored(missing, self.store)
            missing = [question for question in missing if question not in known]
        for start in range(0, len(missing), REQUESTS_A_COMMIT):
            known |= self._fresh(missing[start : start + REQUESTS_A_COMMIT], ask)
        self._add(Usage(cache_hits=len(asked) - len(missing)))
        return known

    def _stored(self, questions: list[Question], store: Store) -> dict[Question, Any]:
        keys = {self._key(question): question for question in questions}
        values = store.read(list(keys))
        return self._remember({keys[key]: decode(keys[key].verb, value) for key, value in values.items()})

    def _fresh(
        self, questions: list[Question], ask: Callable[[list[Question]], Sequence[Any]]
    ) -> dict[Question, Any]:
        """Ask the model, and keep what it answers on disk before anything else can go wrong."""
        values = self._metered(questions, ask)
        answers = dict(zip(questions, values, strict=True))
        if self.store is not None:
            source = Source(questions[0].verb, self.name, self.revision)
            kept = {self._key(q): encode(q.verb, value) for q, value in answers.items()}
            self.store.write(kept, source, {self._key(q): self._told(q) for q in answers})
        return self._remember(answers)

    def _metered(
        self, questions: list[Question], ask: Callable[[list[Question]], Sequence[Any]]
    ) -> Sequence[Any]:
        allow(len(questions))
        before, start = counters(self.model), time.perf_counter()
        values = ask(questions)
        seconds = time.perf_counter() - start
        embedded = len(questions) if questions[0].verb == "embed" else 0
        asked = Usage(calls=len(questions), texts_embedded=embedded, seconds=seconds)
        self._add(asked + (counters(self.model) - before))
        return values

    def _add(self, asked: Usage) -> None:
        """Count on this model's meter and on the process's."""
        for meter in (self.usage, TOTAL):
            meter.restore((meter + asked).as_dict())

    def _write(self, questions: list[Question], sampling: Sampling) -> list[str]:
        """Generate the missing samples, prompts that miss the same ones together."""
        samples: dict[str, list[int]] = {}
        for question in questions:
            samples.setdefault(question.request[0], []).append(question.sample)
        spans: dict[tuple[int, int], list[str]] = {}
        for prompt, own in samples.items():
            spans.setdefault((min(own), max(own) + 1), []).append(prompt)
        texts: dict[tuple[str, int], str] = {}
        for (first, end), prompts in spans.items():
            written = self.model.generate(prompts, end - first, sampling, first)
            for prompt, own_texts in zip(prompts, written, strict=True):
                texts |= {(prompt, first + i): text for i, text in enumerate(own_texts)}
        return [texts[question.request[0], question.sample] for question in questions]

    def _remember(self, answers: dict[Question, Any]) -> dict[Question, Any]:
        for value in answers.values():
            _freeze(value)
        self._memory |= answers
        while len(self._memory) > ANSWERS_IN_MEMORY:
            del self._memory[next(iter(self._memory))]
        return answers

    def _key(self, question: Question) -> Key:
        full = json.dumps([self.name, self.revision, question.verb, question.request])
        return hashlib.sha256(full.encode()).hexdigest(), question.sample

    def _told(self, question: Question) -> str:
        """What an export needs besides the answer; the key is only a hash."""
        return json.dumps({"request": question.request, "evidence": self.evidence})


def _freeze(value: Any) -> None:
    """Forbid changes to a remembered array: whoever asks next must get what the model answered."""
    arrays = (value.logprobs, value.tokens, value.words) if isinstance(value, OptionScores) else (value,)
    for array in arrays:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False


def encode(verb: Verb, value: Any) -> str:
    """Return an answer as JSON; embeddings as base64 of little-endian float32."""
    if verb == "generate":
        return json.dumps(value)
    if verb == "score":
        return json.dumps({field: getattr(value, field).tolist() for field in OptionScores.__slots__})
    if verb == "label":
        return json.dumps(value.tolist())
    return json.dumps({"f32": base64.b64encode(value.astype("<f4").tobytes()).decode()})


def decode(verb: Verb, text: str) -> Any:
    """Return the answer that :func:`encode` wrote, the same to the last bit."""
    value = json.loads(text)
    if verb == "generate":
        return value
    if verb == "score":
        counts = {field: np.array(value[field], dtype=np.int64) for field in ("tokens", "words")}
        return OptionScores(np.array(value["logprobs"], dtype=np.float64), **counts)
    if verb == "label":
        return np.array(value, dtype=np.float64)
    return np.frombuffer(base64.b64decode(value["f32"]), dtype="<f4").astype(np.float32)
