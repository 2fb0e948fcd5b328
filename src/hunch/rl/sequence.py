"""A causal transformer over the steps of a lifetime, with a cache of keys and values.

One token is one step: the observation, the action and the reward before it, and the number of the step in its
episode and in its lifetime. Each has an embedding, and the token is their sum. The output at a token is the
logits of the step's action, as in Laskin et al., "In-context Reinforcement Learning with Algorithm
Distillation" (ICLR 2023). An observation is embedded by its pieces (:func:`hunch.rl.lifetimes.pieces`), so
that "row 3, column 4" shares parameters with "row 3".

This module imports torch, so import it only where a network is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hunch.core import IntArray


class Steps(NamedTuple):
    """Steps of n lifetimes as input of the network; integers are indices of embeddings, 0 is padding."""

    pieces: Tensor  # of the observation, shape (n, T, P)
    actions: Tensor  # before the step, (n, T)
    rewards: Tensor  # before the step, (n, T)
    places: Tensor  # of the step in its episode, (n, T)

    @classmethod
    def of(cls, pieces: IntArray, actions: IntArray, rewards: Any, places: IntArray) -> Steps:
        """Return arrays as tensors."""
        return cls(
            torch.from_numpy(pieces),
            torch.from_numpy(actions),
            torch.from_numpy(np.asarray(rewards, dtype=np.float32)),
            torch.from_numpy(places),
        )


class SequenceModel(nn.Module):
    """The causal transformer over the steps of lifetimes.

    Args:
        pieces: Number of different words in observations (:func:`hunch.rl.lifetimes.pieces`).
        actions: Number of different actions.
        length: Maximum length of a lifetime in steps.
        places: Maximum length of an episode in steps.
        width: Width of the residual stream.
        layers: Number of transformer blocks.
        heads: Number of attention heads per block; must divide the width.
    """

    def __init__(
        self, *, pieces: int, actions: int, length: int, places: int, width: int, layers: int, heads: int
    ) -> None:
        super().__init__()
        self.length = length
        self.heads = heads
        self.pieces = nn.Embedding(pieces + 1, width, padding_idx=0)
        self.actions = nn.Embedding(actions + 1, width, padding_idx=0)
        self.rewards = nn.Linear(1, width)
        self.places = nn.Embedding(places, width)
        self.positions = nn.Embedding(length, width)
        for table in (self.pieces, self.actions, self.places, self.positions):
            nn.init.normal_(table.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, actions)

    def forward(self, steps: Steps) -> Tensor:
        """Return the logits of the action of every step, shape (n, T, number of actions)."""
        positions = torch.arange(steps.actions.shape[1])  # (T,)
        x = self._tokens(steps, positions)  # (n, T, width)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.last(x))
        return logits

    def _tokens(self, steps: Steps, positions: Tensor) -> Tensor:
        """Return the sum of the embeddings of every step, shape (n, T, width)."""
        observations = self.pieces(steps.pieces).sum(2)  # (n, T, P, width) -> (n, T, width)
        tokens: Tensor = observations + self.actions(steps.actions)
        tokens = tokens + self.rewards(steps.rewards[..., None])
        tokens = tokens + self.places(steps.places)
        tokens = tokens + self.positions(positions)
        return tokens

    def begin(self, version: int = 0) -> Cache:
        """Return an empty cache for weights with this number of updates."""
        depth = self.positions.embedding_dim // self.heads
        return Cache(len(self.blocks), self.heads, self.length, depth, version)

    @torch.no_grad()
    def step(self, steps: Steps, cache: Cache, streams: Sequence[int]) -> Tensor:
        """Read one more step of each given stream; return the logits of its action, shape (n, actions).

        Args:
            steps: The steps, with T = 1.
            cache: Keys and values of earlier steps in all streams; the call adds to it.
            streams: The stream of each step.
        """
        rows = cache.rows(streams)  # (n,)
        positions = cache.used[rows]  # (n,): the number of earlier steps of each stream
        x = self._tokens(steps, positions[:, None])  # (n, 1, width)
        for layer, block in enumerate(self.blocks):
            x = block(x, cache.layer(layer, rows, positions))
        cache.used[rows] += 1
        logits: Tensor = self.head(self.last(x))[:, 0]
        return logits


class Block(nn.Module):
    """A transformer block: attention and a perceptron, each after a normalisation and with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        # The names are those of saved weights.
        self.before = nn.LayerNorm(width)
        self.between = nn.LayerNorm(width)
        self.mixed = nn.Linear(width, 3 * width)  # queries, keys and values
        self.out = nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, earlier: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None) -> Tensor:
        """Return the residual stream after the block.

        Args:
            x: The residual stream, shape (n, T, width).
            earlier: Adds the step's key and value to a cache; returns all keys and values with a mask. None
                if ``x`` is the whole lifetime.
        """
        n, t, width = x.shape
        mixed = self.mixed(self.before(x)).view(n, t, 3, self.heads, width // self.heads)
        query = mixed[:, :, 0].transpose(1, 2)  # (n, heads, T, depth)
        keys_values = mixed[:, :, 1:].permute(2, 0, 3, 1, 4)  # (2, n, heads, T, depth)
        if earlier is None:
            key, value = keys_values
            attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            (key, value), mask = earlier(keys_values)
            attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.out(attended.transpose(1, 2).reshape(n, t, width))
        x = x + self.wide(self.between(x))
        return x


class Cache:
    """Keys and values of the steps so far, of each stream.

    Args:
        layers: Number of blocks.
        heads: Number of attention heads per block.
        length: Maximum length of a lifetime in steps.
        depth: Width of an attention head.
        version: Number of updates that the weights had.
    """

    def __init__(self, layers: int, heads: int, length: int, depth: int, version: int = 0) -> None:
        self.version = version
        self.memory = torch.zeros(layers, 2, 0, heads, length, depth)
        self.used = torch.zeros(0, dtype=torch.long)
        self.row: dict[int, int] = {}

    def rows(self, streams: Sequence[int]) -> Tensor:
        """Return the row of each stream; new streams get a new row."""
        new = [stream for stream in streams if stream not in self.row]
        if new:  # otherwise each step would copy the whole memory
            self.row |= {stream: len(self.row) + i for i, stream in enumerate(new)}
            # memory: (layers, 2 for keys and values, streams, heads, length, depth)
            layers, two, _, *rest = self.memory.shape
            self.memory = torch.cat([self.memory, torch.zeros(layers, two, len(new), *rest)], 2)
            self.used = torch.cat([self.used, torch.zeros(len(new), dtype=torch.long)])
        return torch.tensor([self.row[stream] for stream in streams])

    def layer(self, layer: int, rows: Tensor, positions: Tensor) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        """Return the function that a block calls with new keys and values, shape (2, n, heads, 1, depth)."""

        def extended(keys_values: Tensor) -> tuple[Tensor, Tensor]:
            memory = self.memory[layer]  # (2, streams, heads, length, depth), a view
            # Of two lists of indices with a slice between them the axis comes first: (n, 2, heads, depth).
            memory[:, rows, :, positions] = keys_values[:, :, :, 0].transpose(0, 1)
            # A stream sees its steps so far, and nothing of what a longer or forgotten lifetime left behind.
            longest = int(positions.max()) + 1
            mask = torch.arange(longest) <= positions[:, None]  # (n, longest)
            return memory[:, rows, :, :longest], mask[:, None, None]

        return extended

    def forget(self, streams: Sequence[int]) -> None:
        """Start new lifetimes in these streams."""
        self.used[[self.row[stream] for stream in streams if stream in self.row]] = 0
