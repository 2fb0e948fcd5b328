"""Reads several texts in one forward pass of an encoder, with the same bits as reading each alone.

A single short text leaves the processor mostly idle. So texts are concatenated without padding, and only the
attention separates them: texts of equal length attend as one batch, in which each is computed by itself. All
other layers work on one token at a time, in passes of a few fixed lengths, for which every matrix product is
tested when the model is loaded (:mod:`hunch.lm.scoring.rowwise`). If a bit differs, or the architecture does
not allow it, texts are read one by one. Either way the result for a text depends on that text only.

This module imports torch and transformers, so import it only where a model is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from hunch.lm.scoring.rowwise import rowwise

PASSES: Final = (16, 32, 48, 64, 96, 128, 160, 192, 224, 256)
"""Possible lengths of a pass in tokens; the remainder is filled with a dummy text."""
LONGEST: Final = 64
"""Maximum tokens of a text that shares a pass; a longer one keeps the processor busy by itself."""
NAME: Final = "hunch_packed"
TOLERANCE: Final = 1e-4


class Reader:
    """Computes the last hidden states of texts.

    Attributes:
        packs: True if short texts are read together.
    """

    def __init__(self, network: Any, *, pack: bool) -> None:
        """Prepare a model of the transformers library without a head, to pack texts if no bit changes."""
        self.network, self.packs = network, False
        self._first = 0  # the position of a text's first token
        if pack:
            before = network.config._attn_implementation
            self.packs = self._suits()
            if not self.packs:
                network.set_attn_implementation(before)

    def states(self, texts: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return the last hidden states of each text, shape (number of tokens, width)."""
        states: dict[int, Tensor] = {}  # by the place of a text: (tokens, width)
        with torch.inference_mode():
            if self.packs:
                for places in passes([len(text) for text in texts]):
                    together = self._together([texts[i] for i in places])
                    states |= dict(zip(places, together, strict=True))
            for i, text in enumerate(texts):
                if i not in states:
                    states[i] = self._alone(text)
        return [states[i] for i in range(len(texts))]

    def _alone(self, text: Sequence[int]) -> Tensor:
        if self.packs:
            return self._pass([text])[0]
        states: Tensor = self.network(input_ids=self._row(text)).last_hidden_state[0]
        return states

    def _together(self, texts: Sequence[Sequence[int]]) -> list[Tensor]:
        """Read texts in one pass, shortest first, with a dummy text that fills it."""
        size = sum(map(len, texts))
        length = next(length for length in PASSES if length >= size)
        if length > size:
            texts = [*texts, [0] * (length - size)]
            return self._pass(texts)[:-1]
        return self._pass(texts)

    def _pass(self, texts: Sequence[Sequence[int]]) -> list[Tensor]:
        """Read texts in one pass; texts of equal length must be adjacent."""
        lengths = [len(text) for text in texts]
        tokens = [token for text in texts for token in text]
        positions = [place for length in lengths for place in range(self._first, self._first + length)]
        groups = [(length, len(list(same))) for length, same in groupby(lengths)]
        output = self.network(
            input_ids=self._row(tokens),  # (1, tokens)
            position_ids=self._row(positions),  # (1, tokens)
            groups=groups,
        )
        states: Tensor = output.last_hidden_state[0]  # (tokens, width)
        return list(torch.split(states, lengths))

    def _row(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor([numbers], device=self.network.device)

    def _suits(self) -> bool:
        """Return whether texts read together give the same results as alone, bit for bit."""
        short, long = list(range(5, 12)), list(range(7, 36, 2))
        padding = getattr(self.network.config, "pad_token_id", None) or 0
        try:
            with torch.inference_mode():
                wanted = [self._alone(text) for text in (short, long)]
                self.network.set_attn_implementation(NAME)
                for self._first in (0, padding + 1):  # RoBERTa counts positions from the padding's id
                    together = self._together([short, long])
                    pairs = zip(together, wanted, strict=True)
                    if all(torch.allclose(one, other, rtol=0, atol=TOLERANCE) for one, other in pairs):
                        return rowwise(self.network, PASSES)
        except Exception:  # an architecture may raise anything on inputs that it does not know
            return False
        return False


def passes(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of the texts of each pass; texts too long to share a pass are left out."""
    batch: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if lengths[index] > LONGEST:
            break
        if tokens + lengths[index] > PASSES[-1]:
            yield batch
            batch = []
            tokens = 0
        batch.append(index)
        tokens += lengths[index]
    if batch:
        yield batch


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    groups: Sequence[tuple[int, int]] | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Let each token attend to the tokens of its own text, in both directions.

    Query, key and value have shape (1, heads, tokens, head size). ``groups`` has the length of texts and
    their number for each group of equal length; None is the usual attention. ``options`` are dropout and
    scaling. Returns the output, shape (1, tokens, heads, head size), and None for the weights.
    """
    if groups is None:
        usual: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, mask, **options)
        return usual
    outputs: list[Tensor] = []
    heads, head_size = query.shape[1], query.shape[3]
    start = 0
    for length, texts in groups:
        end = start + length * texts
        # The texts of a group become a batch: (texts, heads, length, head size).
        q, k, v = (
            part[0, :, start:end].view(heads, texts, length, head_size).transpose(0, 1)
            for part in (query, key, value)
        )
        output, _ = sdpa_attention_forward(module, q, k, v, None, **options)  # (texts, length, heads, size)
        outputs.append(output.flatten(0, 1))  # (texts * length, heads, size)
        start = end
    return torch.cat(outputs)[None], None


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)
