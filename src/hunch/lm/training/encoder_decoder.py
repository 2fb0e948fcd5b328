"""Encoder-decoder models whose weights are trained: T5 and Flan-T5, as in GLAM's paper.

The encoder reads a prompt once for all its options. The decoder computes the tree of the options in one pass,
with shared beginnings only once. T5 encodes positions by a bias for the distance of two tokens, counted along
the row, but neighbours in the row may lie in different branches of the tree. So the mask holds the difference
between the bias by depth and the bias by row; with it, each option gets the same bias as alone.

Imports torch and transformers, so it is imported where a model is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from hunch.core import UsageError
from hunch.lm.backends import seam
from hunch.lm.backends.transformer import TransformerModel
from hunch.lm.base import Verb
from hunch.lm.prompts import Prompt
from hunch.lm.scoring.engine import laid_out
from hunch.lm.scoring.trie import Tokens, Tree, grow
from hunch.lm.speech import text_of
from hunch.lm.training.model import Trainable
from hunch.lm.training.outputs import Row
from hunch.lm.training.writing import Texts

FAMILIES = ("t5", "mt5")
"""Model families whose position bias belongs to the first layer and is shared by the others."""


class EncoderDecoderModel(TransformerModel):
    """An encoder-decoder model with its files; only the trainable model uses it.

    Raises:
        UsageError: for a family other than T5.
    """

    head = "AutoModelForSeq2SeqLM"
    packs = False
    verbs: ClassVar[frozenset[Verb]] = frozenset()  # type: ignore[misc]

    def __init__(self, name: str, folder: Any, *, device: str = "cpu", dtype: str = "float32") -> None:
        super().__init__(name, folder, device=device, dtype=dtype)
        if (family := self.network.config.model_type) not in FAMILIES:
            raise UsageError(
                f"{name} is an encoder-decoder model of the family {family}; only {' and '.join(FAMILIES)} "
                "can be trained."
            )

    def _tokens(self, prompt: Prompt, scored: bool = False) -> list[int]:
        """Tokenise a prompt for the encoder."""
        return self._text_tokens(text_of(prompt), None)

    def tails(self, prompt: Prompt, options: Sequence[str]) -> list[list[int]]:
        """Tokenise options as inputs of the decoder.

        Raises:
            UsageError: if the tokenizer cannot write an option.
        """
        rows = [seam.as_text(self.tokenizer, option, self._control) for option in options]
        return [seam.writable(self, option, row) for option, row in zip(options, rows, strict=True)]

    def decode(self, head: Tokens, tokens: Tokens) -> str:
        """Return the text of tokens after a prompt."""
        text: str = self.tokenizer.decode(tokens, skip_special_tokens=True)
        return text


class EncoderDecoder(Trainable):
    """An encoder-decoder model for training; the state of a prompt is the decoder's first state (GLAM)."""

    model: EncoderDecoderModel  # type: ignore[assignment]

    def _rooted(self, head: Tokens, tails: Sequence[Tokens]) -> Row:
        return list(head), grow([self._opening], tails)

    @property
    def _opening(self) -> int:
        start: int = self.network.config.decoder_start_token_id
        return start

    def _forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        read, there = self._encoded([head for head, _ in rows])
        states = self._decoded(read, there, [tree for _, tree in rows])
        scale = self.network.config.d_model**-0.5 if self.network.config.scale_decoder_outputs else 1.0
        return self.network.lm_head(states * scale), states

    def _states(self, heads: Sequence[Tokens]) -> Tensor:
        trees = [grow([self._opening], [[0]])] * len(heads)
        return self._decoded(*self._encoded(heads), trees)[:, -1].float()

    def _encoded(self, heads: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Return the encoder's last states, padded at the end, and the mask of the tokens."""
        rows = [torch.tensor(head) for head in heads]
        pad = torch.nn.utils.rnn.pad_sequence
        there = pad([torch.ones_like(row) for row in rows], batch_first=True).to(self.network.device)
        padded = pad(rows, batch_first=True).to(self.network.device)
        read: Tensor = self.network.encoder(padded, attention_mask=there).last_hidden_state
        return read, there

    def _decoded(self, read: Tensor, there: Tensor, trees: Sequence[Tree]) -> Tensor:
        """Return the decoder's last states, shape (n_prompts, longest tree, dim), padded at the front."""
        device = self.network.device
        tokens, depths, mask = laid_out(trees, [0] * len(trees), 0, self.network.dtype)
        states: Tensor = self.network.decoder(
            input_ids=tokens.to(device),
            attention_mask=mask.to(device) + self._moved(depths.to(device)),
            encoder_hidden_states=read,
            encoder_attention_mask=there,
            use_cache=False,
        ).last_hidden_state
        return states

    def _moved(self, depths: Tensor) -> Tensor:
        """Return the bias by depth minus the bias by place in the row, shape (n, heads, width, width)."""
        attention = self.network.decoder.block[0].layer[0].SelfAttention
        near = attention._relative_position_bucket(
            depths[:, None, :] - depths[:, :, None],
            bidirectional=False,
            num_buckets=attention.relative_attention_num_buckets,
            max_distance=attention.relative_attention_max_distance,
        )
        wanted: Tensor = attention.relative_attention_bias(near).permute(0, 3, 1, 2)
        given: Tensor = attention.compute_bias(depths.shape[1], depths.shape[1])
        return wanted - given

    def _opened(self, heads: Sequence[Tokens]) -> Texts:
        read, there = self._encoded(heads)
        first = torch.full((len(heads), 1), self._opening, device=there.device)
        inputs = {"encoder_outputs": read, "attention_mask": there, "decoder_input_ids": first}
        return Texts(self._write, inputs, lambda last, tokens: {**last, "decoder_input_ids": tokens})

    def _write(self, encoder_outputs: Tensor, **inputs: Any) -> Any:
        return self.network(encoder_outputs=(encoder_outputs,), **inputs)
