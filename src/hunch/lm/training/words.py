"""A new small model over words: a Llama with about a million random weights, whose vocabulary grows.

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

from hunch.lm.backends import weights
from hunch.lm.backends.bag_of_words import WORD, words
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.training.causal import Causal

VOCABULARY: Final = 2048
SIZES: Final = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 344,
}
SPECIAL: Final = {"<unknown>": 0, "<end>": 1}


class Words(Causal):
    """A causal model over words; those that it has not taken are unknown.

    Attributes:
        words: The words that it knows, in the order in which they came.
    """

    words: tuple[str, ...] = ()

    def take(self, texts: Iterable[str]) -> None:
        """Add the new words of some texts, as long as there is room."""
        every = dict.fromkeys(self.words) | dict.fromkeys(word for text in texts for word in words(text))
        self.words = tuple(every)[: VOCABULARY - len(SPECIAL)]
        self.model.tokenizer.backend_tokenizer.model = _vocabulary(self.words)
        self._row.cache_clear()
        self._head.cache_clear()


def new(seed: int, context: int) -> Words:
    """Return a new model that knows no words yet. Its evidence level is L1.

    Args:
        seed: Seed of the weights.
        context: Maximum number of tokens of a prompt; a longer one loses its beginning.
    """
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=SPECIAL["<end>"],
        hunch_evidence="L1",
        **SIZES,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = transformers.LlamaForCausalLM(config)
    with TemporaryDirectory() as folder:
        weights.write(Path(folder), network, _tokenizer())
        return Words(CausalModel("words", Path(folder), prefix_cache=0), context=context)


def _tokenizer() -> Any:
    made = Tokenizer(_vocabulary(()))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), "removed", invert=True)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")


def _vocabulary(known: Iterable[str]) -> Any:
    numbers = {word: len(SPECIAL) + number for number, word in enumerate(known)}
    return models.WordLevel({**SPECIAL, **numbers}, unk_token="<unknown>")
