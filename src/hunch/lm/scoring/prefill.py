"""Prompts that have been read, and after which texts are written one at a time.

This module imports torch and transformers, so import it only where a model is loaded.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from hunch.core import FloatArray
from hunch.lm.scoring.prefix import Block, State
from hunch.lm.scoring.trie import Tokens, Tree, chain
from hunch.lm.scoring.writer import Text


class Computing(Protocol):
    """The methods of :class:`hunch.lm.scoring.engine.Engine` that reading a prompt needs."""

    block: int
    computed: int

    def prefix(self, tokens: Tokens) -> list[Block]:
        """Return all whole blocks before the last token."""
        ...

    def append(self, state: State, trees: Sequence[Tree], keep: int) -> torch.Tensor:
        """Append a tree to each row of a state; return the logits at the last ``keep`` tokens."""
        ...

    def run(self, tokens: torch.Tensor, keep: int, **inputs: Any) -> tuple[torch.Tensor, Any]:
        """Return the logits at the last ``keep`` positions, and the state after them."""
        ...


class Prefill(Protocol):
    """A prompt that has been read; samples continue it one after the other.

    Attributes:
        logprobs: Log-probabilities of the next token, shape (vocabulary,).
    """

    logprobs: FloatArray

    def rewind(self) -> None:
        """Return to the end of the prompt."""
        ...

    def step(self, token: int) -> FloatArray:
        """Append a token and return the log-probabilities of the next one, shape (vocabulary,)."""
        ...


class Alone:
    """A group of one text at a time (:class:`hunch.lm.scoring.writer.Group`)."""

    size = 0

    def __init__(self, start: Prefill) -> None:
        self.start = start
        self.texts: Sequence[Text] = [()]

    def follow(self, texts: Sequence[Text]) -> None:
        """Prepare for a text with one more token, or for a new text after the prompt."""
        if len(texts[0]) == 1:
            self.start.rewind()
        self.texts = texts

    def step(self) -> FloatArray:
        """Read the last token of the text; return the log-probabilities of the next, shape (vocabulary,)."""
        return self.start.step(self.texts[0][-1])


class BlockPrefill:
    """A prompt in blocks; each sample overwrites the previous one, so nothing is copied."""

    def __init__(self, engine: Computing, prompt: Tokens, room: int) -> None:
        blocks = engine.prefix(prompt)
        rest = prompt[len(blocks) * engine.block :]
        self._engine, self._length = engine, len(prompt)
        self.state = State([blocks], len(prompt) + room)
        engine.computed += len(rest)
        self.logprobs = self._append(chain(rest))

    def _append(self, tree: Tree) -> FloatArray:
        return log_softmax(self._engine.append(self.state, [tree], keep=1))

    def rewind(self) -> None:
        """Return to the end of the prompt."""
        self.state.rewind(self._length)

    def step(self, token: int) -> FloatArray:
        """Append a token; return the log-probabilities of the next, shape (vocabulary,)."""
        return self._append(chain([token]))


class PlainPrefill:
    """A prompt with the network's usual kind of state; each sample continues from a copy."""

    def __init__(self, engine: Computing, prompt: Tokens) -> None:
        self._engine, self._prompt = engine, prompt
        engine.computed += len(prompt)
        logits, self._past = engine.run(torch.tensor([prompt]), keep=1)
        self.logprobs = log_softmax(logits)
        self._tokens: list[int] = []
        self._now: Any = None

    def rewind(self) -> None:
        """Return to the end of the prompt."""
        self._tokens, self._now = list(self._prompt), copy.deepcopy(self._past)

    def step(self, token: int) -> FloatArray:
        """Append a token; return the log-probabilities of the next, shape (vocabulary,)."""
        self._tokens.append(token)
        new = self._tokens if self._now is None else [token]  # some keep no state that could be passed on
        state = {} if self._now is None else {"past_key_values": self._now}
        logits, self._now = self._engine.run(torch.tensor([new]), keep=1, **state)
        return log_softmax(logits)


def log_softmax(logits: torch.Tensor) -> FloatArray:
    """Return the log-probabilities after the last position of a single row, shape (vocabulary,)."""
    logprobs: FloatArray = torch.log_softmax(logits[0, -1].float(), dim=-1).double().cpu().numpy()
    return logprobs
