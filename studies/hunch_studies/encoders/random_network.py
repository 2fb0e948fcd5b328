"""A transformer with random weights: the control that has an encoder's architecture without its training.

The sizes are those of all-MiniLM-L6-v2, a BERT with 6 layers of width 384. Instead of a trained tokenizer, a
word is hashed to one of as many tokens as BERT's vocabulary has, so no file is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

from hunch.core import UsageError
from hunch.lm.backends import weights
from hunch.lm.backends.bag_of_words import word_hash, words
from hunch.lm.base import Float32Array, Model, Verb, threads, unit

SIZES = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
VOCABULARY = 30_522
MAX_TOKENS = 256
START, END, SPECIAL = 0, 1, 2  # special tokens, and their number


class RandomNetwork(Model):
    """Mean of the last hidden state over the tokens, scaled to length 1: 384 numbers, at most 256 tokens.

    Evidence L0. It runs in float32 on one CPU thread, like ``minilm``. The weights are drawn like those of an
    untrained BERT.
    """

    verbs: frozenset[Verb] = frozenset({"embed"})
    dim = SIZES["hidden_size"]
    at_once: ClassVar[Mapping[Verb, int]] = {"embed": 128}
    context = MAX_TOKENS

    def __init__(self, *, seed: int = 0) -> None:
        """Draw the weights.

        Raises:
            UsageError: if the seed is not a whole number of at least 0.
            HunchError: if torch or transformers is missing.
        """
        if not isinstance(seed, int) or seed < 0:
            raise UsageError(f"The seed of random-network must be a whole number of at least 0, not {seed}.")
        self.name = "random-network"
        # The weights depend on torch (the draws) and on transformers (their order).
        self.revision = f"1:{seed}:torch-{version('torch')}:transformers-{version('transformers')}"
        self.network = _draw(seed)
        from hunch.lm.backends.packing import Reader  # loads torch

        with threads(1):
            self._reader = Reader(self.network, pack=True)
        self.revision += ":packed" * self._reader.packs
        self.parameters = sum(weight.numel() for weight in self.network.parameters())

    def embed(self, texts: Sequence[str]) -> Float32Array:
        """Return one unit vector per text, shape (len(texts), 384); a text is cut after 256 tokens."""
        rows = [tokens(text) for text in texts]
        self.tokens_read += sum(map(len, rows))
        with threads(1):
            vectors = [unit(states.mean(dim=0).numpy()) for states in self._reader.states(rows)]
        return np.stack(vectors) if vectors else np.zeros((0, self.dim), dtype=np.float32)


def tokens(text: str) -> list[int]:
    """Return the tokens of a text between a start and an end."""
    span = VOCABULARY - SPECIAL
    hashed = [SPECIAL + word_hash(word) % span for word in words(text)]
    return [START, *hashed[: MAX_TOKENS - 2], END]


def _draw(seed: int) -> Any:
    torch, transformers = weights.libraries()
    config = transformers.BertConfig(vocab_size=VOCABULARY, max_position_embeddings=MAX_TOKENS, **SIZES)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return transformers.BertModel(config, add_pooling_layer=False).eval()
