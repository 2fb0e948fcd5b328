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
from torch.nn.utils.rnn import pad_sequence

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

    def _tree(self, prompt: Tokens, texts: Sequence[Tokens]) -> Row:
        return list(prompt), grow([self._start_token], texts)

    @property
    def _start_token(self) -> int:
        token: int = self.network.config.decoder_start_token_id
        return token

    def _forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        encoded, mask = self._encode([prompt for prompt, _ in rows])
        states = self._decode(encoded, mask, [tree for _, tree in rows])  # (rows, nodes, dim)
        config = self.network.config
        scale = config.d_model**-0.5 if config.scale_decoder_outputs else 1.0
        logits: Tensor = self.network.lm_head(states * scale)  # (rows, nodes, vocabulary)
        return logits, states

    def _states(self, prompts: Sequence[Tokens]) -> Tensor:
        encoded, mask = self._encode(prompts)
        only_start = grow([self._start_token], [[0]])
        return self._decode(encoded, mask, [only_start] * len(prompts))[:, -1].float()

    def _encode(self, prompts: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Return the encoder's states, shape (prompts, longest, dim), padded at the end, and their mask."""
        tokens = [torch.tensor(prompt) for prompt in prompts]
        ones = [torch.ones_like(of_prompt) for of_prompt in tokens]
        padded = pad_sequence(tokens, batch_first=True).to(self.network.device)  # (prompts, longest)
        mask = pad_sequence(ones, batch_first=True).to(self.network.device)
        with self.recomputing():
            states: Tensor = self.network.encoder(padded, attention_mask=mask).last_hidden_state
        return states, mask

    def _decode(self, encoded: Tensor, encoded_mask: Tensor, trees: Sequence[Tree]) -> Tensor:
        """Return the decoder's last states, shape (trees, longest tree, dim), padded at the front."""
        device = self.network.device
        tokens, depths, mask = laid_out(trees, [0] * len(trees), 0, self.network.dtype)
        with self.recomputing():
            states: Tensor = self.network.decoder(
                input_ids=tokens.to(device),
                attention_mask=mask.to(device) + self._bias_by_depth(depths.to(device)),
                encoder_hidden_states=encoded,
                encoder_attention_mask=encoded_mask,
                use_cache=False,
            ).last_hidden_state
        return states

    def _bias_by_depth(self, depths: Tensor) -> Tensor:
        """Return what turns the bias for distances in the row into that for distances in the tree.

        Args:
            depths: Number of ancestors of each token, shape (trees, nodes).

        Returns:
            The difference of both biases, shape (trees, heads, nodes, nodes).
        """
        attention = self.network.decoder.block[0].layer[0].SelfAttention
        buckets = attention._relative_position_bucket(
            depths[:, None, :] - depths[:, :, None],
            bidirectional=False,
            num_buckets=attention.relative_attention_num_buckets,
            max_distance=attention.relative_attention_max_distance,
        )
        by_depth: Tensor = attention.relative_attention_bias(buckets).permute(0, 3, 1, 2)
        by_row: Tensor = attention.compute_bias(depths.shape[1], depths.shape[1])
        return by_depth - by_row

    def _read(self, prompts: Sequence[Tokens]) -> Texts:
        encoded, mask = self._encode(prompts)
        start = torch.full((len(prompts), 1), self._start_token, device=mask.device)
        inputs = {"encoder_outputs": encoded, "attention_mask": mask, "decoder_input_ids": start}
        return Texts(self._next, inputs, lambda last, tokens: {**last, "decoder_input_ids": tokens})

    def _next(self, encoder_outputs: Tensor, **inputs: Any) -> Any:
        """Compute the next token; the network takes what it has encoded as a tuple."""
        return self.network(encoder_outputs=(encoder_outputs,), **inputs)
