"""The pocket model's tokenizer: byte pairs within words, numbers of two digits whole, with their sign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hunch.lm.pocket import corpus

SIZE: Final = 1024
END: Final = "<|end|>"
PIECES: Final = r"\n|-?\d{1,2}| ?[A-Za-z_]+|(?:(?! ?[A-Za-z_]|-?\d)[^\n])+|."
"""A line end, a number, a word with the blank before it, or signs; no token crosses these borders."""


def train(seed: str = "tokenizer", documents: int = 3000) -> Any:
    """Fit a tokenizer to documents of the corpus.

    Returns:
        A tokenizer of transformers that puts the start token before every text.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre_tokenizers.Split(Regex(PIECES), "isolated")
    raw.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(_texts(seed, documents), trainer)
    raw.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", special_tokens=[(END, raw.token_to_id(END))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token=END, eos_token=END, clean_up_tokenization_spaces=False
    )


def _texts(seed: str, documents: int) -> Iterator[str]:
    """Documents, and every number of two digits often enough to be a token."""
    numbers = "\n".join(f"{n}\n{n:02d}" for n in range(-40, 100))
    yield from [numbers] * 400
    for i in range(documents):
        yield corpus.text(corpus.document(f"{seed}-{i}", 1200))


def load(folder: Path) -> Any:
    """Read the tokenizer of a folder."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder))
