"""A new small model over words: a Llama with random weights and a growing vocabulary.

This module imports torch and transformers, so import it only where such a model is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import torch
import transformers
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from hunch.core import UsageError
from hunch.lm.backends.bag_of_words import WORD, words
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.training.causal import Causal
from hunch.lm.training.weights import Start, write

SPECIAL: Final = {"<unknown>": 0, "<end>": 1}


class Words(Causal):
    """A causal model over words; words outside its vocabulary are unknown.

    Attributes:
        words: The words of the vocabulary, in the order in which they were added.
    """

    words: tuple[str, ...] = ()

    def take(self, texts: Iterable[str]) -> None:
        """Add the new words of texts to the vocabulary, up to its maximum size."""
        every = dict.fromkeys(self.words) | dict.fromkeys(word for text in texts for word in words(text))
        self._know(tuple(every)[: self.network.config.vocab_size - len(SPECIAL)])

    def _know(self, known: tuple[str, ...]) -> None:
        self.words = known
        self.model.tokenizer.backend_tokenizer.model = _vocabulary(known)
        self._row.cache_clear()
        self._prompt_tokens.cache_clear()
        self.model.tail.cache_clear()

    def restart(self, start: Start = "weights", seed: int = 0) -> None:
        """Empty the vocabulary, and draw new weights with the seed; there are no other initial weights."""
        super().restart("random", seed)
        self._start = "weights"
        self._know(())

    def save(self, folder: str | Path) -> Path:
        """Save the model with its vocabulary, as a transformers folder, which ``hf:`` loads."""
        return write(Path(folder), self.network, self.model.tokenizer)


def new(
    *,
    seed: int = 0,
    context: int | None = None,
    width: int = 128,
    layers: int = 4,
    heads: int = 4,
    vocabulary: int = 2048,
) -> Words:
    """Return a new model with an empty vocabulary; the spec ``scratch`` names one. Evidence level L1.

    Args:
        seed: Seed of the weights.
        context: Maximum number of tokens of a prompt; a longer one loses its beginning.
        width: Length of a hidden state.
        layers: Number of layers.
        heads: Number of heads of the attention.
        vocabulary: Maximum number of words, including two for the end and for unknown words.

    Raises:
        UsageError: if a size is not positive, or the heads do not divide the width evenly.
    """
    sizes = (width, layers, heads, vocabulary - len(SPECIAL))
    if not all(isinstance(size, int) and size > 0 for size in sizes) or width % (2 * heads):
        raise UsageError(
            "layers and heads must be at least 1, vocabulary above 2, and width a multiple of twice the "
            f"heads, not width={width}, layers={layers}, heads={heads}, "
            f"vocabulary={vocabulary}."
        )
    config = transformers.LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=-(-width // 3) * 8,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=SPECIAL["<end>"],
        hunch_evidence="L1",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = transformers.LlamaForCausalLM(config)
    with TemporaryDirectory() as folder:
        write(Path(folder), network, _tokenizer())
        return Words(CausalModel("words", Path(folder), prefix_cache=0), context=context)


def _tokenizer() -> Any:
    made = Tokenizer(_vocabulary(()))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), "removed", invert=True)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")


def _vocabulary(known: Iterable[str]) -> Any:
    numbers = {word: len(SPECIAL) + number for number, word in enumerate(known)}
    return models.WordLevel({**SPECIAL, **numbers}, unk_token="<unknown>")
