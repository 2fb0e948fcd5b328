"""Dry runs: everything runs as usual, but random answers replace those that are not in the cache.

No model is asked. The requests are those of a real run, except where they depend on earlier answers.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from hunch.core import FloatArray, HunchError, HunchWarning
from hunch.lm.answers.cache import Cached
from hunch.lm.answers.store import Source, Store
from hunch.lm.answers.table import Key
from hunch.lm.backends.account import checked_prices
from hunch.lm.backends.sampling import THOUGHTS, sample_rng
from hunch.lm.backends.uniform import UniformModel
from hunch.lm.base import Backend, Float32Array, LanguageModel, Model, OptionScores
from hunch.lm.decision import DecisionQuestion
from hunch.lm.prompts import Prompt
from hunch.lm.registry import backend_of, build, split
from hunch.lm.speech import ONE_LINE, Sampling, text_of
from hunch.lm.usage import prices

T = TypeVar("T")
CHARACTERS_PER_TOKEN: Final = 4
BRIEF: Final = 256
"""Estimated maximum tokens of a written text that is not an item of a list, such as a program."""


def unasked(spec: str) -> Model:
    """Return a stand-in for a model whose server cannot be reached, with its name and prices.

    A kind of decision models decides; any other counts as a chat model that only writes.

    Raises:
        UsageError: if its prices are not numbers.
    """
    model, (head, options) = Model(), split(spec)
    model.name, model.revision, model.evidence = head, "not asked", options.get("evidence", "L3")
    if backend_of(head).verbs == {"decide"}:
        model.verbs = frozenset({"decide"})
    else:
        model.verbs = frozenset({"generate", "see"} if options.get("see") else {"generate"})
        model.answer_tokens, model.takes = THOUGHTS, frozenset(("effort", "choices"))
    names = "price_in", "price_out"
    vars(model).update(zip(names, checked_prices(*(options.get(name, 0.0) for name in names)), strict=True))
    vars(model)["lacking"] = dict.fromkeys(("score", "label", "embed"), "its server was not reached.")
    return model


class StandIn(Model):
    """Answers at random in place of a model, and counts the tokens that the model would read and write.

    Attributes:
        price_in: The model's price per million tokens read.
        price_out: The model's price per million tokens written.
        brief: Whether token counts are those of a model that does not think first.
    """

    speaks = False

    def __init__(self, model: LanguageModel, brief: bool = False) -> None:
        self.brief = brief
        self.name, self.revision = model.name, model.revision
        self.verbs, self.evidence, self.dim = model.verbs, model.evidence, model.dim
        self.price_in, self.price_out = prices(model)
        self.answer_tokens = getattr(model, "answer_tokens", 0)
        self.thinks = getattr(model, "thinks", None)
        self.takes, self.lacking = getattr(model, "takes", frozenset()), getattr(model, "lacking", {})
        self.best_way = getattr(model, "best_way", None)
        self._answers = UniformModel()

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k random items of each prompt's list.

        An answer counts the tokens of its list item, or ``max_tokens`` if there is no list or no line end
        stops it; with ``brief`` at most ``BRIEF`` tokens.
        """
        answers = self._answers.generate(prompts, k, sampling, first)
        self.tokens_read += k * sum(map(tokens, map(text_of, prompts)))
        most = min(sampling.max_tokens, BRIEF) if self.brief else sampling.max_tokens
        ends = self.brief or sampling.stop
        self.tokens_written += sum(tokens(t) if t and ends else most for texts in answers for t in texts)
        return answers

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[OptionScores]:
        """Return equal scores for all options; the prompt is counted once per option."""
        self.tokens_read += sum(
            tokens(text_of(prompt) + option)
            for prompt, listed in zip(prompts, options, strict=True)
            for option in listed
        )
        return self._answers.score(prompts, options)

    def label(self, prompts: Sequence[Prompt], labels: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return equal scores for all labels; one written token is counted per prompt."""
        self.tokens_read += sum(map(tokens, map(text_of, prompts)))
        self.tokens_written += len(prompts)
        return self._answers.label(prompts, labels)

    def decide(
        self, states: Sequence[Prompt], questions: Sequence[Sequence[DecisionQuestion]]
    ) -> list[list[FloatArray | None]]:
        """Return equal probabilities; state and questions are counted once per state, as in one request."""
        for state, questions_of_state in zip(states, questions, strict=True):
            asked = [
                text
                for question in questions_of_state
                for text in (question.instructions, *question.options, *filter(None, question.descriptions))
            ]
            self.tokens_read += tokens(text_of(state)) + sum(map(tokens, asked))
        return self._answers.decide(states, questions)

    def embed(self, texts: Sequence[Prompt]) -> Float32Array:
        """Return a random unit vector per text, shape (len(texts), dim)."""
        self.tokens_read += sum(tokens(text_of(text)) for text in texts)
        vectors = [sample_rng(self.name, text).normal(size=self.dim) for text in texts]
        return np.array([v / np.linalg.norm(v) for v in vectors], dtype=np.float32).reshape(-1, self.dim)


def tokens(text: str) -> int:
    """Estimate the number of tokens of a text."""
    return 1 + len(text) // CHARACTERS_PER_TOKEN


class Shadow(Store):
    """A read-only view of a file of answers; new answers are only stored in memory."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._new: dict[Key, str] = {}

    def _try(self, work: Callable[[sqlite3.Connection], T], writing: bool = False) -> T | None:
        return None if writing else super()._try(work)

    def read(self, keys: Sequence[Key]) -> dict[Key, str]:
        """Return the new answers, and those of the file."""
        known = {key: self._new[key] for key in keys if key in self._new}
        rest = [key for key in keys if key not in known]
        return known | (super().read(rest) if self.path.exists() else {})

    def write(
        self, answers: dict[Key, str], source: Source, questions: Mapping[Key, str] | None = None
    ) -> dict[Key, str]:
        """Keep answers for this dry run."""
        self._new |= answers
        return {}


class Rehearsal:
    """Replaces models by stand-ins; all stand-ins of a dry run share their answers, like models with a file.

    Args:
        brief: Whether token counts are those of models that do not think first.
    """

    def __init__(self, brief: bool = False) -> None:
        self.brief = brief
        self.stand_ins: list[StandIn] = []
        self._shadows: dict[Path, Shadow] = {}

    def __call__(self, model: LanguageModel, store: Store | None) -> Cached:
        """Return a stand-in with the answers of the file and of this dry run."""
        shadow = None if store is None else self._shadows.setdefault(store.path, Shadow(store.path))
        self.stand_ins.append(StandIn(model, self.brief))
        return Cached(self.stand_ins[-1], shadow)

    def build(self, spec: str, options: Mapping[str, Any]) -> tuple[Backend, LanguageModel]:
        """Build the outline of a model. Without its server, it counts as a chat model that only generates."""
        try:
            return build(spec, options, outline=True)
        except HunchError as error:
            if not getattr(error, "unreached", False):
                raise
            model = unasked(spec)
            kind = "a model that decides"
            if "generate" in model.verbs:
                room = f"{model.answer_tokens:,} tokens per answer (fewer if its context is small)"
                kind = f"a chat model that only writes, with {room}"
            warnings.warn(
                f"{error} The server could not be asked, so the dry run treats it as {kind}.",
                HunchWarning,
                stacklevel=2,
            )
            return backend_of(spec.partition("?")[0]), model

    @contextmanager
    def replacing(self, models: Iterable[Cached]) -> Iterator[None]:
        """Let models inside other objects, such as environments, answer as stand-ins in a ``with`` block."""
        before = {id(model): (model, vars(model).copy()) for model in models}.values()
        for model, attributes in before:
            vars(model).update(vars(self(model.model, model.store)) | {"usage": attributes["usage"]})
        try:
            yield
        finally:
            for model, attributes in before:
                vars(model).update(attributes)
