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
        found: dict[int, Tensor] = {}
        with torch.inference_mode():
            for own in passes([len(text) for text in texts]) if self.packs else []:
                found |= dict(zip(own, self._together([texts[i] for i in own]), strict=True))
            return [found[i] if i in found else self._alone(text) for i, text in enumerate(texts)]

    def _alone(self, text: Sequence[int]) -> Tensor:
        if self.packs:
            return self._pass([text])[0]
        states: Tensor = self.network(input_ids=self._row(text)).last_hidden_state[0]
        return states

    def _together(self, texts: Sequence[Sequence[int]]) -> list[Tensor]:
        """Read texts in one pass, shortest first, with a dummy text that fills it."""
        size = sum(map(len, texts))
        free = next(most for most in PASSES if most >= size) - size
        return self._pass([*texts, [0] * free] if free else texts)[: len(texts)]

    def _pass(self, texts: Sequence[Sequence[int]]) -> list[Tensor]:
        """Read texts in one pass; texts of equal length must be adjacent."""
        lengths = [len(text) for text in texts]
        places = [place for length in lengths for place in range(self._first, self._first + length)]
        states: Tensor = self.network(
            input_ids=self._row([token for text in texts for token in text]),
            position_ids=self._row(places),
            groups=[(length, len(list(same))) for length, same in groupby(lengths)],
        ).last_hidden_state[0]
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
                    pairs = zip(self._together([short, long]), wanted, strict=True)
                    if all(torch.allclose(found, own, rtol=0, atol=TOLERANCE) for found, own in pairs):
                        return rowwise(self.network, PASSES)
        except Exception:  # an architecture may raise anything on inputs that it does not know
            return False
        return False


def passes(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of the texts of each pass; texts too long to share a pass are left out."""
    own: list[int] = []
    size = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if lengths[index] > LONGEST:
            break
        if size + lengths[index] > PASSES[-1]:
            yield own
            own, size = [], 0
        own.append(index)
        size += lengths[index]
    if own:
        yield own


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
    parts: list[Tensor] = []
    start = 0
    for length, texts in groups:
        end, shape = start + length * texts, (query.shape[1], texts, length, query.shape[3])
        own = [part[0, :, start:end].view(shape).transpose(0, 1) for part in (query, key, value)]
        seen, _ = sdpa_attention_forward(module, *own, None, **options)
        parts.append(seen.flatten(0, 1))
        start = end
    return torch.cat(parts)[None], None


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)
