"""One request to a model as a value, used as the cache key and sent over a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.lm.answers.table import Kind
from hunch.lm.base import Float32Array, OptionScores, Verb
from hunch.lm.decision import DecisionQuestion, checked_lists
from hunch.lm.prompts import Prompt, as_prompt, shown
from hunch.lm.speech import ONE_LINE, Sampling, choices


class Question(NamedTuple):
    """One hashable request and the index of the sample.

    Attributes:
        verb: The kind of request; ``"count"`` for the number of a text's tokens, which the tokenizer knows.
        request: ``(prompt, sampling as a tuple)``, ``(prompt, options)``, ``(prompt, labels)``, ``(text,)``
            or ``(state, DecisionQuestion)``; a prompt or state is a text or a tuple of messages.
        sample: Index of the sample; 0 if nothing is sampled.
    """

    verb: Kind
    request: tuple[Any, ...]
    sample: int = 0


class Answering:
    """Implements the five kinds of request; a subclass defines how a list of questions is answered."""

    name: str
    verbs: frozenset[Verb] = frozenset()
    dim: int = 0

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling | None = None, first: int = 0
    ) -> list[list[str]]:
        """Return k continuations of each prompt: samples number ``first`` to ``first + k - 1``.

        By default they are sampled as :data:`hunch.lm.ONE_LINE`.

        Raises:
            UsageError: if k is below 1 or first below 0.
        """
        return self.generate_each(prompts, [sampling or ONE_LINE] * len(_several(prompts)), k, first)

    def generate_each(
        self, prompts: Sequence[Prompt], samplings: Sequence[Sampling], k: int = 1, first: int = 0
    ) -> list[list[str]]:
        """Return k continuations of each prompt as :meth:`generate` does; each prompt has its own sampling.

        All are asked at once, so that prompts with different options fill the slots of a server together.

        Raises:
            UsageError: if k is below 1 or first below 0, or the numbers of prompts and samplings differ.
        """
        if k < 1 or first < 0:
            raise UsageError(f"generate needs k >= 1 and first >= 0, but got k={k} and first={first}.")
        if len(prompts) != len(samplings):
            raise UsageError(f"{len(prompts)} prompts have {len(samplings)} samplings.")
        asked = [
            [Question("generate", (prompt, sampling.key()), index) for index in range(first, first + k)]
            for prompt, sampling in zip(self._seen(prompts), samplings, strict=True)
        ]
        answers = self._answers([question for together in asked for question in together])
        return [[answers[question] for question in together] for together in asked]

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        """Return the log-probability of each option of a prompt as its continuation.

        Raises:
            UsageError: if a prompt has no options, or a blank one.
        """
        return self._choosing("score", prompts, options)

    def label(self, prompts: Sequence[Prompt], labels: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return one array per prompt, as :meth:`hunch.lm.LanguageModel.label` describes it.

        Raises:
            UsageError: if a prompt has no labels, or a blank one.
        """
        return self._choosing("label", prompts, labels)

    def _choosing(self, verb: Verb, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[Any]:
        asked = [Question(verb, pair) for pair in choices(self._seen(prompts), options)]
        answers = self._answers(asked)
        return [answers[question] for question in asked]

    def embed(self, texts: Sequence[Prompt]) -> Float32Array:
        """Return one vector per text, or per message that is one picture, shape (len(texts), dim)."""
        asked = [Question("embed", (text,)) for text in self._seen(texts)]
        answers = self._answers(asked)
        vectors = [answers[question] for question in asked]
        return np.stack(vectors) if vectors else np.zeros((0, self.dim), dtype=np.float32)

    def decide(
        self, states: Sequence[Prompt], questions: Sequence[Sequence[DecisionQuestion]]
    ) -> list[list[FloatArray | None]]:
        """Return the probabilities of the answers, as :meth:`hunch.lm.LanguageModel.decide` describes it.

        Raises:
            UsageError: if the numbers of states and lists differ, or a question cannot be asked.
        """
        seen = self._seen(states)
        asked = [
            [Question("decide", (state, question)) for question in of_state]
            for state, of_state in zip(seen, checked_lists(seen, questions), strict=True)
        ]
        answers = self._answers([question for together in asked for question in together])
        return [[answers[question] for question in together] for together in asked]

    def _seen(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        """Return prompts in hashable form, after a check that the model can see their pictures."""
        hashable: list[Prompt] = [as_prompt(prompt) for prompt in _several(prompts)]
        if "see" not in self.verbs and any(map(shown, hashable)):
            raise UsageError(f"The model {self.name} cannot see pictures: it lacks the verb 'see'.")
        return hashable

    def _answers(self, asked: list[Question]) -> dict[Question, Any]:
        """Return the answer to each question, some of which may be equal."""
        raise NotImplementedError


def _several(texts: Sequence[Any]) -> Sequence[Any]:
    """Refuse a single text, which would be read letter by letter, and numbers."""
    if isinstance(texts, str):
        raise UsageError(f"A model is asked a list of texts, as in [{texts[:20]!r}], not a single text.")
    for text in texts:
        if not isinstance(text, str | Sequence):
            raise UsageError(f"A model is asked texts or lists of messages, not {text!r}.")
    return texts
