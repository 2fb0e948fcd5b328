"""A network that learns to write texts after prompts, by imitation of recorded actions.

It has no cache and no meter, because its answers change with every update. For a model of transformers that
is used like ``hf:``, see :class:`hunch.lm.backends.trainable.Trainable`.

This module imports torch and transformers, so import it only where such a model is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import torch
import transformers
from torch import Tensor

from hunch.core import UsageError
from hunch.lm.backends import weights
from hunch.lm.backends.bag_of_words import words
from hunch.lm.base import OptionScores, count_words
from hunch.lm.scoring.engine import Engine

Encode: TypeAlias = Callable[[str], list[int]]
VOCABULARY: Final = 2048
SIZES: Final = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 344,
}
ROOM: Final = 64  # maximum tokens of a text with its end token, if positions are limited
UNKNOWN, END, SPECIAL = 0, 1, 2  # special tokens, and their number


class Vocabulary:
    """Maps words to tokens in the order in which they were added; later words are unknown once it is full."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.tokens: dict[str, int] = {}
        self.take(known)

    def take(self, texts: Iterable[str]) -> None:
        """Add the new words of some texts, as long as there is room."""
        for text in texts:
            for word in words(text):
                if len(self.tokens) < VOCABULARY - SPECIAL:
                    self.tokens.setdefault(word, SPECIAL + len(self.tokens))

    def __call__(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return [self.tokens.get(word, UNKNOWN) for word in words(text)]


class TrainableModel:
    """A causal model that is trained to write a text after a prompt, and that scores texts.

    Each text ends with an end token. So the probabilities of all texts after a prompt sum to at most 1, and
    "shelf 1" differs from the beginning of "shelf 1 2". A prompt that is too long loses its beginning.

    Args:
        network: A causal model of the transformers library; no dropout is applied, so that updates are
            repeatable.
        encode: Returns the tokens of a text.
        end: The token that ends a text.
        context: Maximum number of tokens of a prompt that are read.
    """

    def __init__(self, network: Any, encode: Encode, end: int, context: int) -> None:
        self.network = network.eval()
        self.encode, self.end, self.context = encode, end, context
        self._engine = Engine(network, "bc-lm", positions(network))

    def log_likelihood(self, prompts: Sequence[str], texts: Sequence[str]) -> Tensor:
        """Return log p(text, end | prompt), summed over tokens, with its gradient; shape (len(texts),)."""
        heads, tails = [self._head(p) for p in prompts], [self._tail(t) for t in texts]
        rows = [torch.tensor(head + tail) for head, tail in zip(heads, tails, strict=True)]
        # Padding comes after the text, where it does not affect a causal model.
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(self.network.device)
        logits = self.network(input_ids=padded[:, :-1], use_cache=False).logits
        each = torch.log_softmax(logits.float(), dim=-1).gather(-1, padded[:, 1:, None]).squeeze(-1)
        place = torch.arange(1, padded.shape[1])
        starts, ends = (
            torch.tensor([len(row) - len(tail) * side for row, tail in zip(rows, tails, strict=True)])
            for side in (1, 0)
        )
        own = (place >= starts[:, None]) & (place < ends[:, None])
        return each.masked_fill(~own.to(each.device), 0.0).sum(dim=1)

    def score(self, prompt: str, options: Sequence[str]) -> OptionScores:
        """Return how likely each option with its end token is after a prompt."""
        tails = [self._tail(option) for option in options]
        logprobs = self._engine.score([(self._head(prompt), tails)])[0]
        return OptionScores(logprobs, np.array([len(tail) for tail in tails]), count_words(options))

    def _head(self, prompt: str) -> list[int]:
        return (self.encode(prompt) or [self.end])[-self.context :]

    def _tail(self, text: str) -> list[int]:
        # The space belongs to the text, as in the training data.
        return [*self.encode(f" {text}"), self.end]


def small(vocabulary: Vocabulary, seed: int, context: int) -> TrainableModel:
    """Return a new Llama over words with about a million random weights."""
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, max_position_embeddings=4096, tie_word_embeddings=True, **SIZES
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = transformers.LlamaForCausalLM(config)
    return TrainableModel(network, vocabulary, END, context)


def pretrained(spec: str, context: int) -> TrainableModel:
    """Return a pretrained causal model of the transformers library, in float32.

    Raises:
        UsageError: if the spec is not ``hf:<name or folder>``, its tokenizer has no end token, or it reads
            fewer tokens than ``context``.
        HunchError: if the model cannot be loaded.
    """
    kind, _, name = spec.partition(":")
    if kind != "hf" or not name:
        raise UsageError(f"The spec of a model to train must be 'hf:<name or folder>', not {spec!r}.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer, network = weights.read(weights.find(name), "AutoModelForCausalLM", device, "float32")
    if tokenizer.eos_token_id is None:
        raise UsageError(f"{spec} cannot be trained to write actions: its tokenizer has no end token.")
    limit = positions(network)
    if limit is not None and context + ROOM > limit:
        raise UsageError(f"{spec} reads at most {limit} tokens: set context to at most {limit - ROOM}.")

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    return TrainableModel(network, encode, tokenizer.eos_token_id, context)


def positions(network: Any) -> int | None:
    """Return the maximum number of tokens that a network reads; None if unknown."""
    stated: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    return stated
