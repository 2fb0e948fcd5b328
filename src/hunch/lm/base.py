"""The protocol of a language model: five batched verbs and a few attributes.

**Every answer is a pure function of (model revision, request, sample index).** It never depends on the rest
of the batch, the order of calls or the process. On one machine, therefore, cached and fresh answers, single
and batched ones, and those of a first and a resumed run are equal bit for bit. To ensure this, a backend
computes the options of a prompt together, and sample i of a prompt has its own random generator, seeded with
(revision, prompt, sampling, i).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hunch.core import EvidenceLevel, FloatArray, IntArray, UsageError
from hunch.lm.decision import DecisionQuestion
from hunch.lm.prompts import Prompt
from hunch.lm.speech import Sampling, estimate_tokens

Verb = Literal["generate", "score", "label", "embed", "decide", "see"]
"""Kinds of request to a model; ``see`` means that it accepts messages with pictures."""
Normalisation = Literal["sum", "token", "word"]
Float32Array: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of model.

    Attributes:
        pattern: Form of the specs, such as ``hf:<name or folder>``.
        loader: ``module:function``, imported only when such a model is loaded, because some are heavy.
        verbs: The verbs that its models may support.
        summary: One line for ``hunch lm``.
        costly: True if the answers are stored in the per-user cache.
        imports: Modules that take seconds to import; forked processes share them.
        check: ``module:function``, called like the loader before heavy imports, to refuse wrong options; it
            returns the folder of the weights if they can be trained (:func:`hunch.lm.trainable`).
        outline: ``module:function``, called like the loader, with all of its options; it returns the model as
            far as it is known without its weights and without a server, for dry runs and checks. It cannot be
            asked.
    """

    pattern: str
    loader: str
    verbs: frozenset[Verb]
    summary: str
    costly: bool = True
    imports: tuple[str, ...] = ()
    check: str = ""
    outline: str = ""

    @property
    def takes_argument(self) -> bool:
        """True if the spec has an argument after a colon."""
        return ":" in self.pattern


@dataclass(frozen=True, slots=True)
class OptionScores:
    """The log-probability of each option as the continuation of one prompt, and the length of each.

    Attributes:
        logprobs: Shape (n_options,): the sum over the option's tokens of
            log p(token | prompt, earlier tokens of the option), natural logarithm.
        tokens: Shape (n_options,): number of tokens of each option.
        words: Shape (n_options,): number of whitespace-separated words of each option.
    """

    logprobs: FloatArray
    tokens: IntArray
    words: IntArray

    def normalised(self, by: Normalisation) -> FloatArray:
        """Return the log-probabilities as a sum, or as a mean per token or per word, shape (n_options,).

        Raises:
            UsageError: for any other normalisation.
        """
        if by not in ("sum", "token", "word"):
            raise UsageError(f"The normalisation must be sum, token or word, not {by!r}.")
        lengths = {"token": self.tokens, "word": self.words}.get(by)
        return self.logprobs.copy() if lengths is None else self.logprobs / lengths


class LanguageModel(Protocol):
    """The protocol of a language model.

    Attributes:
        name: The spec that loads it, such as ``"minilm"``.
        revision: Changes whenever answers may change; a hash of the weights or the parameters of a rule.
        verbs: The kinds of request that the model supports; others raise :class:`~hunch.core.UsageError`.
        evidence: The evidence level of results with this model (:data:`~hunch.core.EvidenceLevel`).
        dim: Length of an embedding; 0 if the model does not embed.
        context: Maximum number of tokens that the model reads; None if unknown.
    """

    name: str
    revision: str
    verbs: frozenset[Verb]
    evidence: EvidenceLevel
    dim: int
    context: int | None

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, estimated if the model's tokenizer is not available."""
        ...

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling = ..., first: int = 0
    ) -> list[list[str]]:
        """Return k continuations of each prompt: samples number ``first`` to ``first + k - 1``."""
        ...

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        """Return the log-probability of each option of a prompt as the prompt's continuation."""
        ...

    def label(self, prompts: Sequence[Prompt], labels: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return the log-probability of each short label of a prompt as the next output.

        Returns:
            One array per prompt, shape (n_labels,), natural logarithm; -inf if a server returns only its
            most likely outputs and the label is not among them.
        """
        ...

    def embed(self, texts: Sequence[Prompt]) -> Float32Array:
        """Return a vector per text, or per picture in a message (verb ``see``), shape (len(texts), dim)."""
        ...

    def decide(
        self, states: Sequence[Prompt], questions: Sequence[Sequence[DecisionQuestion]]
    ) -> list[list[FloatArray | None]]:
        """Return the probabilities of the answers to the questions on each state.

        Args:
            states: The states, as prompts.
            questions: The questions on each state; those on one state are one request, where possible.

        Returns:
            For each state and question the probabilities, shape (number of options,), summing to one; None if
            the model refuses to answer.
        """
        ...


def _refusing(verb: Verb) -> Callable[..., Any]:
    """Return the method of a model that lacks a verb."""

    def refuse(self: Model, *_: Any, **__: Any) -> NoReturn:
        """Raise a UsageError: this model lacks the verb."""
        raise self._lacks(verb)

    return refuse


class Model:
    """Base class of backends. It refuses every kind of request; a backend overrides those that it supports.

    Attributes:
        context: Maximum number of tokens that the model reads; None if unknown.
        parameters: Number of weights; 0 for a rule.
        tokens_read: Prompt and option tokens computed so far, if the backend counts them.
        tokens_written: Tokens generated so far, if the backend counts them.
        at_once: Number of requests that the cache sends together before it stores the answers;
            32 by default.
        messages: True if its verbs accept messages; otherwise the cache joins them to one text.
        prompting: How a prompt is presented to the model, in words.
        answer_tokens: Minimum tokens for an answer, because a chat model may think or explain first;
            0 for a model that continues text, which is stopped where its answer ends.
        takes: Optional settings of :class:`Sampling` that the model supports: ``effort``, ``choices``,
            ``tools``.
        best_way: The way of asking that suits the model best (:mod:`hunch.lm.ways`), if it declares one.
        thinks: True if a chat model thinks before it answers, False if not; None if that is not known.
    """

    name: str
    revision: str
    verbs: frozenset[Verb] = frozenset()
    evidence: EvidenceLevel = "L0"
    dim: int = 0
    context: int | None = None
    parameters: int = 0
    tokens_read: int = 0
    tokens_written: int = 0
    at_once: ClassVar[Mapping[Verb, int]] = {}
    messages: bool = False
    prompting: str = "text as it is; messages joined to one text"
    answer_tokens: int = 0
    takes: frozenset[str] = frozenset()
    best_way: str | None = None
    thinks: bool | None = None

    def count_tokens(self, text: str) -> int:
        """Return an estimate of the number of tokens of a text, slightly below the number for GPT-2."""
        return estimate_tokens(text)

    generate: Any = _refusing("generate")
    score: Any = _refusing("score")
    label: Any = _refusing("label")
    embed: Any = _refusing("embed")
    decide: Any = _refusing("decide")

    def _lacks(self, verb: str) -> UsageError:
        has = ", ".join(sorted(self.verbs)) or "none"
        return UsageError(f"The model {self.name} does not have the verb {verb!r}; it has {has}.")


def unit(vector: Float32Array) -> Float32Array:
    """Return a vector scaled to length 1; a zero vector is returned unchanged."""
    return vector / max(np.float32(np.linalg.norm(vector)), np.float32(1e-12))


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Set the number of torch threads for a while; the last digits of an answer may depend on it."""
    if find_spec("torch") is None:  # an optional package: without it there are no such threads
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
