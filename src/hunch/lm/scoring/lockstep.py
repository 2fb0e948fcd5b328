"""Writes many samples of many prompts together: each pass reads the next token of every sample.

Each sample depends only on its prompt and its own random generator, bit for bit. The rows of a pass meet only
in the products with weights, and a test shows whether other rows matter there
(:mod:`hunch.lm.scoring.rowwise`). The attention of a prompt's texts is computed over their own keys, without
padding. Samples with the same tokens so far share one text.

This module imports torch and transformers, so import it only where a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import Cache, CacheLayerMixin
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from hunch.lm.scoring.prefix import State
from hunch.lm.scoring.writer import Draft, Text
from hunch.lm.speech import Sampling

PASSES: Final = (4, 8, 16, 24, 32, 48, 64, 80, 96, 128)
"""Possible numbers of rows per pass; unused rows are filled with dummies."""
MOST_ROWS: Final = PASSES[-1]
NAME: Final = "hunch_lockstep"
UNKNOWN: Final = ("softcap", "s_aux", "position_bias")
"""Arguments of attention in some architectures that are not supported here."""


class Group:
    """Texts after one prompt, with their keys and values (:class:`hunch.lm.scoring.writer.Group`).

    Attributes:
        texts: The texts; the last token of each is read by the next pass.
        length: Number of tokens of the prompt and each text that have been read.
    """

    def __init__(self, state: State, rows: int, room: int) -> None:
        """Start from the state of the prompt, with room for ``rows`` texts of ``room`` tokens after it."""
        self.texts: Sequence[Text] = [()]
        self.prompt = state.length  # number of tokens of the prompt
        self.length = state.length
        self._rows = rows
        self.keys = [self._repeated(layer.keys, room) for layer in state.layers]
        self.values = [self._repeated(layer.values, room) for layer in state.layers]

    @property
    def size(self) -> int:
        """Size of the keys and values in bytes."""
        return sum(part.nbytes for part in (*self.keys, *self.values))

    def _repeated(self, of_prompt: Tensor, room: int) -> Tensor:
        """Return a prompt's keys or values once for each text, with room for the texts.

        Args:
            of_prompt: Keys or values of one layer, shape (1, heads, tokens, head size).
            room: Number of tokens after the prompt.

        Returns:
            Shape (rows, heads, tokens, head size); tokens come first in memory, as in ``Layer``.
        """
        _, heads, _, size = of_prompt.shape
        repeated = of_prompt.new_empty(self._rows, self.length + room, heads, size).transpose(1, 2)
        repeated[:, :, : self.length] = of_prompt[:, :, : self.length]
        return repeated

    def follow(self, texts: Sequence[Text]) -> None:
        """Prepare for texts that extend earlier ones by one token, or that start again after the prompt."""
        if len(texts[0]) == 1:
            self.length = self.prompt
        else:
            places = {text: place for place, text in enumerate(self.texts)}
            self._take([places[text[:-1]] for text in texts])
        self.texts = texts

    def _take(self, places: Sequence[int]) -> None:
        """Move what was written, so that the rows are those of the texts at these places."""
        if list(places) != list(range(len(places))):
            for part in (*self.keys, *self.values):
                written = part[:, :, self.prompt : self.length]
                written[: len(places)] = written[list(places)]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        """Append a token's keys and values to each text, and return the attention's output.

        Args:
            layer: Index of the layer.
            query: Shape (heads, texts, head size).
            key: Shape (key heads, texts, head size).
            value: Shape of ``key``.
            scale: Scale of the products of query and key.

        Returns:
            Shape (texts, heads, head size).
        """
        rows = len(self.texts)
        end = self.length + 1
        keys = self.keys[layer][:rows]  # (texts, key heads, tokens, head size)
        values = self.values[layer][:rows]
        keys[:, :, self.length] = key.transpose(0, 1)
        values[:, :, self.length] = value.transpose(0, 1)
        # Query heads that share keys are treated as several tokens that see the same keys:
        # (texts, key heads, heads / key heads, head size).
        queries = query.transpose(0, 1).reshape(rows, key.shape[0], -1, query.shape[2])
        attended = functional.scaled_dot_product_attention(
            queries, keys[:, :, :end], values[:, :, :end], scale=scale
        )
        return attended.flatten(1, 2)


class Rows(Cache):  # type: ignore[misc]
    """The states of all groups of a pass, in place of the usual cache."""

    def __init__(self, groups: Sequence[Group], layers: int) -> None:
        super().__init__(layers=[RowLayer(self, number) for number in range(layers)])
        self.groups = groups
        self.layer = 0  # the one that attends next

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        """Return the attention's output of each row, shape (1, rows, heads, head size)."""
        _, heads, rows, size = query.shape  # key and value: (1, key heads, rows, head size)
        attended: list[Tensor] = []  # (texts, heads, head size) each
        start = 0
        for group in self.groups:
            of_group = slice(start, start + len(group.texts))
            attended.append(
                group.attend(
                    self.layer, query[0, :, of_group], key[0, :, of_group], value[0, :, of_group], scale
                )
            )
            start = of_group.stop
        if start < rows:  # dummies
            attended.append(query.new_zeros(rows - start, heads, size))
        return torch.cat(attended)[None]


class RowLayer(CacheLayerMixin):  # type: ignore[misc]
    """One layer of the rows, in the form of a cache layer; passes new keys and values to the attention."""

    def __init__(self, rows: Rows, number: int) -> None:
        super().__init__()
        self.rows, self.number = rows, number

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Do nothing: the groups have reserved the memory."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Record which layer attends next, and return the arguments."""
        self.rows.layer = self.number
        return key_states, value_states

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return arbitrary numbers of tokens, because no mask is made."""
        return query_length, 0

    def get_seq_length(self) -> int:
        """Return 0, because positions are given explicitly."""
        return 0

    def get_max_length(self) -> int:
        """Return -1: there is no limit."""
        return -1


_active: ContextVar[Rows | None] = ContextVar("rows", default=None)


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Compute the attention of the rows of a pass if there is one, else the usual attention."""
    rows = _active.get()
    if rows is None:
        usual: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, mask, **options)
        return usual
    if any(options.get(name) is not None for name in UNKNOWN):
        raise NotImplementedError
    return rows.attend(query, key, value, options.get("scaling")), None


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)


def prepare(network: Any) -> bool:
    """Make a network use :func:`attend`; outside a pass nothing changes. Return whether this is possible."""
    if network.config.get_text_config()._attn_implementation == "sdpa":
        network.set_attn_implementation(NAME)
    return bool(network.config.get_text_config()._attn_implementation == NAME)


def advance(network: Any, groups: Sequence[Group]) -> Tensor:
    """Read the last token of each text; return the logits of the next token, shape (texts, vocabulary)."""
    tokens = [text[-1] for group in groups for text in group.texts]
    positions = [group.length for group in groups for _ in group.texts]
    size = next((size for size in PASSES if size >= len(tokens)), len(tokens))
    dummies = [0] * (size - len(tokens))
    device = network.device
    rows = Rows(groups, network.config.get_text_config().num_hidden_layers)
    token = _active.set(rows)
    try:
        with torch.inference_mode():
            logits: Tensor = network(
                input_ids=torch.tensor([tokens + dummies], device=device),
                position_ids=torch.tensor([positions + dummies], device=device),
                attention_mask=torch.zeros(1, 1, 1, 1, device=device),  # a ready mask, so that none is made
                past_key_values=rows,
                use_cache=True,
            ).logits[0, : len(tokens)]
    finally:
        _active.reset(token)
    for group in groups:
        group.length += 1
    return logits


def draw(logits: Tensor, sampling: Sampling, drafts: Sequence[Draft]) -> list[int]:
    """Draw each draft's next token with the draft's generator; logits have shape (drafts, vocabulary).

    Logits and log-probabilities give the same tokens.
    """
    if sampling.temperature == 0:
        return [int(token) for token in logits.argmax(dim=-1).tolist()]
    # Softmax without its divisor, in float64: exp((logit - largest logit) / temperature).
    logits = logits.float()
    weights = ((logits - logits.amax(dim=-1, keepdim=True)).double() / sampling.temperature).exp()
    if sampling.top_p < 1:
        # A token stays if the likelier ones have less than top_p together.
        ranked, order = weights.sort(dim=-1, descending=True, stable=True)
        before = ranked.cumsum(dim=-1) - ranked
        ranked[before >= sampling.top_p * weights.sum(dim=-1, keepdim=True)] = 0.0
        weights = torch.zeros_like(weights).scatter_(-1, order, ranked)
    # Inverse of the distribution function, at a uniform number of each draft's own generator.
    cumulative = weights.cumsum(dim=-1)  # (drafts, vocabulary)
    uniform = torch.tensor([draft.rng.random() for draft in drafts], dtype=torch.float64)[:, None]
    quantiles = uniform.to(cumulative.device) * cumulative[:, -1:]  # (drafts, 1)
    tokens = torch.searchsorted(cumulative, quantiles, right=True)  # (drafts, 1)
    return [int(token) for token in tokens[:, 0].tolist()]
