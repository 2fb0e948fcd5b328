"""Key-value states of token prefixes, which grow in place.

This module imports torch and transformers, so import it only where a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

Block = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of some tokens in each layer, shape (1, heads, tokens, head size)."""


class Layer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer, written in place.

    The token axis comes first in memory. So the strides, and with them the last bits of results for n
    tokens, do not depend on the memory reserved after them.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room, self.length = room, 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate memory when the shapes are known."""
        self.keys, self.values = map(self._empty, (key_states, value_states))
        self.is_initialized = True

    def _empty(self, like: torch.Tensor) -> torch.Tensor:
        rows, heads, _, size = like.shape
        return like.new_zeros(rows, self.room, heads, size).transpose(1, 2)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append keys and values, and return all of them so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[2]
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def load(self, rows: Sequence[Block]) -> None:
        """Load tokens that were computed before: keys and values of each row's blocks in this layer."""
        like = next(pair for row in rows for pair in row)
        self.lazy_initialization(*(part.expand(len(rows), -1, -1, -1) for part in like))
        for index, row in enumerate(rows):
            at = 0
            for keys, values in row:
                end = at + keys.shape[2]
                self.keys[index, :, at:end], self.values[index, :, at:end] = keys[0], values[0]
                at = end
            self.length = max(self.length, at)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of tokens after the query, and the index of the first one."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """Return the number of tokens."""
        return self.length

    def get_max_length(self) -> int:
        """Return the maximum number of tokens."""
        return self.room


class State(Cache):  # type: ignore[misc]
    """The key-value state of one or more prefixes, with room for further tokens.

    Attributes:
        lengths: Number of tokens of each row; shorter rows are padded up to ``length``.
    """

    def __init__(self, rows: Sequence[Sequence[Block]], room: int) -> None:
        """Start with the blocks of each row, with room for ``room`` tokens in total."""
        super().__init__(layer_class_to_replicate=partial(Layer, room))
        self.lengths = [sum(block[0][0].shape[2] for block in row) for row in rows]
        for index in range(max(len(row[0]) if row else 0 for row in rows)):
            self.layers.append(Layer(room))
            self.layers[index].load([[block[index] for block in row] for row in rows])

    @property
    def length(self) -> int:
        """The index at which the next token is written."""
        return self.layers[0].length if self.layers else 0

    def rewind(self, length: int) -> None:
        """Forget the tokens of a single row after the first ``length``."""
        self.lengths = [length]
        for layer in self.layers:
            layer.length = length

    def block(self, start: int, end: int) -> Block:
        """Return a copy of the keys and values of some tokens of a single row."""
        return [
            (layer.keys[:, :, start:end].clone(), layer.values[:, :, start:end].clone())
            for layer in self.layers
        ]
