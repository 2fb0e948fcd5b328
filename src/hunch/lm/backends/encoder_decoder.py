"""Encoder-decoder models whose weights are trained: T5 and Flan-T5, as in GLAM's paper.

The encoder reads a prompt once for all its options. The decoder computes the tree of the options in one pass,
with shared beginnings only once. T5 encodes positions by a bias for the distance of two tokens, counted along
the row, but neighbours in the row may lie in different branches of the tree. So the mask holds the difference
between the bias by depth and the bias by row; with it, each option gets the same bias as alone.

Imports torch and transformers, so it is imported where a model is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from hunch.core import UsageError
from hunch.lm.backends.trainable import KNOWN, Answer, Trainable, told
from hunch.lm.backends.transformer import TransformerModel
from hunch.lm.base import ONE_LINE, Sampling, Verb
from hunch.lm.prompts import Prompt, text_of
from hunch.lm.scoring.engine import laid_out
from hunch.lm.scoring.trie import Tree, grow

FAMILIES = ("t5", "mt5")
"""Families whose position bias belongs to the first layer and is shared by the others."""


class EncoderDecoderModel(TransformerModel):
    """The files of an encoder-decoder model, which only a trainable model can use.

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

    def request(self, prompt: Prompt, options: Sequence[str]) -> tuple[list[int], Tree]:
        """Tokenise a prompt for the encoder, and its options for the decoder as a tree after the start token.

        Raises:
            UsageError: if the tokenizer cannot write an option.
        """
        tails = [self.tokenizer(option, add_special_tokens=False)["input_ids"] for option in options]
        for option, tail in zip(options, tails, strict=True):
            if not tail or self.tokenizer.unk_token_id in tail:
                raise UsageError(f"The tokenizer of {self.name} cannot write the option {option!r}.")
        head = self._text_tokens(text_of(prompt), None)
        return head, grow([self.network.config.decoder_start_token_id], tails or [[0]])


class TrainableEncoderDecoder(Trainable):
    """An encoder-decoder model of which all weights, or only adapters, are trained.

    Its answers are like those of a causal model; the state of a prompt is the decoder's first (GLAM).
    """

    model: EncoderDecoderModel  # type: ignore[assignment]

    def __init__(
        self,
        model: EncoderDecoderModel,
        train: Literal["all", "lora"] = "all",
        rank: int = 8,
        alpha: float = 16.0,
        seed: int = 0,
    ) -> None:
        super().__init__(model, train, rank, alpha, seed)  # type: ignore[arg-type]
        self._asked = lru_cache(KNOWN)(model.request)

    def _answers(self, asked: Sequence[tuple[Prompt, tuple[str, ...]]]) -> list[Answer]:
        rows = [self._asked(prompt, own) for prompt, own in asked]
        states, trees = self._decoded(rows), [tree for _, tree in rows]
        scale = self.network.config.d_model**-0.5 if self.network.config.scale_decoder_outputs else 1.0
        logits = self.network.lm_head(states * scale)
        return told(logits, states, trees, [-len(tree.tokens) for tree in trees])

    def _states(self, prompts: Sequence[Prompt]) -> Tensor:
        return self._decoded([self._asked(prompt, ()) for prompt in prompts])[:, -1].float()

    def generate(
        self, prompts: Sequence[Prompt], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Raise an error: the model cannot write.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{self.model.name} has an encoder and a decoder, and scores texts but writes none.")

    def _decoded(self, asked: Sequence[tuple[list[int], Tree]]) -> Tensor:
        """Return the decoder's last states, shape (n_prompts, longest tree, dim), padded at the front."""
        device, decoder = self.network.device, self.network.decoder
        heads = [torch.tensor(head) for head, _ in asked]
        read = torch.nn.utils.rnn.pad_sequence([torch.ones_like(head) for head in heads], batch_first=True)
        padded = torch.nn.utils.rnn.pad_sequence(heads, batch_first=True).to(device)
        there = read.to(device)
        tokens, depths, mask = laid_out([t for _, t in asked], [0] * len(asked), 0, self.network.dtype)
        told: Tensor = decoder(
            input_ids=tokens.to(device),
            attention_mask=mask.to(device) + self._moved(depths.to(device)),
            encoder_hidden_states=self.network.encoder(padded, attention_mask=there).last_hidden_state,
            encoder_attention_mask=there,
            use_cache=False,
        ).last_hidden_state
        return told

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
