"""The pocket model's decoder: a Llama decoder in NumPy that writes many prompts in lockstep.

A small model spends most of its time in calls around a few multiplications. So prompts are read in blocks,
cached prefixes are reused, and all prompts write their next token together.

Answers do not depend on other prompts or on earlier requests, bit for bit: a block always starts at a
multiple of its length and is padded to it, and writing rows are padded to a fixed number, so that every
product always has the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hunch.core import FloatArray
from hunch.lm.base import Float32Array

BLOCK: Final = 32
"""Tokens per block."""
WIDTH: Final = 8
"""Rows that are written together."""
ROWS: Final = 40
"""Minimum number of prompts whose keys and values are kept: 9 MB each with 6 layers, width 192, 1,024
tokens."""
KINDS: Final = 4
"""Factor on the number of prompts asked together, because ends, rewards, states and actions alternate."""


@dataclass(eq=False)
class Row:
    """A text that has been read: its tokens, and their keys and values.

    Attributes:
        keys: Shape (layers, heads, context, head size); the same for ``values``.
        tokens: The tokens; the last may not have been read yet.
        known: Number of tokens in complete blocks.
        head: First block of tokens, to find the row; empty if there is none.
        following: Log-probabilities of the next token, shape (vocabulary,).
    """

    keys: Float32Array
    values: Float32Array
    tokens: list[int] = field(default_factory=list)
    known: int = 0
    head: tuple[int, ...] = ()
    following: FloatArray = field(default_factory=lambda: np.zeros(0))


class Decoder:
    """A Llama decoder with the weights of a model of the transformers library.

    Attributes:
        computed: Number of tokens computed so far.
        saved: Number of prompt tokens found in the cache.

    Args:
        network: A ``LlamaForCausalLM`` with tied embeddings and equal numbers of key and query heads.
    """

    def __init__(self, network: Any) -> None:
        config = network.config
        self.heads = config.num_attention_heads
        self.size = config.hidden_size // self.heads
        self.layers = config.num_hidden_layers
        self.context = config.max_position_embeddings
        self.epsilon = config.rms_norm_eps
        weights = {name: _array(value) for name, value in network.state_dict().items()}
        self.embedding = weights["model.embed_tokens.weight"]
        self.unembedding = np.ascontiguousarray((self.embedding * weights["model.norm.weight"]).T)
        self.weights = [_Layer.of(weights, f"model.layers.{i}.", self.size) for i in range(self.layers)]
        self.cosines, self.sines = _rotations(config.rope_parameters["rope_theta"], self.context, self.size)
        self.computed = self.saved = 0
        self._rows: list[Row] = []  # the least recently used first
        self._room = ROWS

    def read(self, prompts: Sequence[Sequence[int]]) -> list[Row]:
        """Read prompts of at least one token."""
        taken: list[Row] = []
        self._room = max(ROWS, KINDS * len(prompts))
        known: dict[tuple[int, ...], Row] = {}
        for prompt in prompts:
            if (same := known.get(tuple(prompt))) is not None:
                taken.append(self._copy(same, taken))
                continue
            row = known[tuple(prompt)] = self._take(prompt, taken)
            taken.append(row)
            row.tokens = list(prompt)
            self.saved += row.known
            for start in range(row.known, len(prompt), BLOCK):
                x = self._read_block(row, start)
            last = (len(prompt) - 1) % BLOCK
            (row.following,) = self._following(x[last : last + 1])
            row.known = (len(prompt) - 1) // BLOCK * BLOCK
            row.head = tuple(prompt[:BLOCK]) if row.known else ()
        return taken

    def write(self, rows: Sequence[Row]) -> None:
        """Read the new token of each row."""
        for start in range(0, len(rows), WIDTH):
            self._write(rows[start : start + WIDTH])

    def _take(self, prompt: Sequence[int], taken: Sequence[Row]) -> Row:
        """Return the row with the longest common beginning with a prompt, or a copy if others need it."""
        ids, head = np.array(prompt[:-1]), tuple(prompt[:BLOCK])
        shares = [(_common(row, ids), i) for i, row in enumerate(self._rows) if row.head == head]
        common, best = max(shares, default=(0, -1))
        source = self._rows[best] if best >= 0 else None
        if source is not None and not any(source is row for row in taken) and 2 * common >= source.known > 0:
            self._rows.append(self._rows.pop(best))
            source.known = common
            return source
        row = self._vacant(taken)
        if source is not None and common and source is not row:
            row.keys[:, :, :common] = source.keys[:, :, :common]
            row.values[:, :, :common] = source.values[:, :, :common]
            row.known = common
        return row

    def _copy(self, row: Row, taken: Sequence[Row]) -> Row:
        """Return another row of the same prompt, for another sample."""
        other, n = self._vacant(taken), len(row.tokens)
        other.keys[:, :, :n], other.values[:, :, :n] = row.keys[:, :, :n], row.values[:, :, :n]
        other.tokens, other.following = list(row.tokens), row.following
        other.known, other.head = row.known, row.head
        self.saved += n
        return other

    def _vacant(self, taken: Sequence[Row]) -> Row:
        """Return an empty row: a new one, or the least recently used row that nobody needs."""
        free = [row for row in self._rows if not any(row is other for other in taken)]
        if len(self._rows) >= self._room and free:
            row = free[0]
            self._rows = [other for other in self._rows if other is not row]
        else:
            shape = (self.layers, self.heads, self.context, self.size)
            row = Row(np.zeros(shape, np.float32), np.zeros(shape, np.float32))
        row.known, row.head = 0, ()
        self._rows.append(row)
        return row

    def _read_block(self, row: Row, start: int) -> Float32Array:
        """Compute the keys and values of the block from ``start``, padded with its own first token.

        Returns:
            The output of the last layer, shape (tokens, width).
        """
        tokens = row.tokens[start : start + BLOCK]
        self.computed += len(tokens)
        padded = np.array(tokens + tokens[:1] * (BLOCK - len(tokens)))
        end = min(start + BLOCK, self.context)
        padded = padded[: end - start]
        positions = np.arange(start, end)
        x: Float32Array = self.embedding[padded]
        later = np.triu(np.full((end - start, end - start), -np.inf, np.float32), 1)
        for i, layer in enumerate(self.weights):
            q, k, v = self._project(layer, x, positions)
            row.keys[i, :, start:end], row.values[i, :, start:end] = k, v
            scores = q @ row.keys[i, :, :end].transpose(0, 2, 1)
            scores[:, :, start:] += later
            x = self._finish(layer, x, _mixed(scores, row.values[i, :, :end]))
        return x

    def _write(self, rows: Sequence[Row]) -> None:
        self.computed += len(rows)
        padding = WIDTH - len(rows)
        positions = np.array([len(row.tokens) - 1 for row in rows] + [0] * padding)
        x = self.embedding[[row.tokens[-1] for row in rows] + [0] * padding]
        mixed = np.zeros((self.heads, WIDTH, self.size), np.float32)
        for i, layer in enumerate(self.weights):
            q, k, v = self._project(layer, x, positions)
            for n, row in enumerate(rows):
                at = positions[n]
                row.keys[i, :, at], row.values[i, :, at] = k[:, n], v[:, n]
                scores = q[:, n : n + 1] @ row.keys[i, :, : at + 1].transpose(0, 2, 1)
                mixed[:, n] = _mixed(scores, row.values[i, :, : at + 1])[:, 0]
            x = self._finish(layer, x, mixed)
        for row, following in zip(rows, self._following(x), strict=False):
            row.following = following

    def _following(self, x: Float32Array) -> FloatArray:
        """Return log-probabilities of the token after each, shape (tokens, vocabulary)."""
        logits = (self._normed(x) @ self.unembedding).astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        following: FloatArray = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return following

    def _project(
        self, layer: _Layer, x: Float32Array, positions: NDArray[np.int64]
    ) -> tuple[Float32Array, Float32Array, Float32Array]:
        """Queries, keys and values, each of shape (heads, tokens, size of a head)."""
        parts = (self._normed(x) @ layer.qkv).reshape(len(x), 3 * self.heads, self.size).transpose(1, 0, 2)
        both = 2 * self.heads
        turned = _rotated(parts[:both], self.cosines[positions], self.sines[positions])
        return turned[: self.heads], turned[self.heads :], parts[both:]

    def _finish(self, layer: _Layer, x: Float32Array, mixed: Float32Array) -> Float32Array:
        """Attention's output and the perceptron, each added to the stream."""
        x = x + mixed.transpose(1, 0, 2).reshape(len(x), -1) @ layer.out
        both = self._normed(x) @ layer.gate_up
        gate, up = both[:, : both.shape[1] // 2], both[:, both.shape[1] // 2 :]
        finished: Float32Array = x + (gate / (1 + np.exp(-gate)) * up) @ layer.down
        return finished

    def _normed(self, x: Float32Array) -> Float32Array:
        """Scale to a mean square of one; the norm's weights are in the product that follows."""
        square = np.einsum("ij,ij->i", x, x) / np.float32(x.shape[1]) + np.float32(self.epsilon)
        normed: Float32Array = x / np.sqrt(square)[:, None]
        return normed


@dataclass(frozen=True, eq=False)
class _Layer:
    """The weights of one layer as the right sides of products, norms and the scale of queries within."""

    qkv: Float32Array
    out: Float32Array
    gate_up: Float32Array
    down: Float32Array

    @classmethod
    def of(cls, weights: dict[str, Float32Array], prefix: str, size: int) -> _Layer:
        """Take the weights of a layer by their names in transformers."""

        def weight(name: str) -> Float32Array:
            return weights[f"{prefix}{name}.weight"]

        before, between = weight("input_layernorm"), weight("post_attention_layernorm")
        q = weight("self_attn.q_proj") * np.float32(size**-0.5)
        qkv = np.concatenate([q, weight("self_attn.k_proj"), weight("self_attn.v_proj")]) * before
        gate_up = np.concatenate([weight("mlp.gate_proj"), weight("mlp.up_proj")]) * between
        rest = weight("self_attn.o_proj"), weight("mlp.down_proj")
        return cls(*(np.ascontiguousarray(m.T) for m in (qkv, rest[0], gate_up, rest[1])))


def _array(value: Any) -> Float32Array:
    array: Float32Array = value.float().cpu().numpy()
    return array


def _common(row: Row, prompt: NDArray[np.int64]) -> int:
    """Return how many of a prompt's first tokens a row holds, in whole blocks."""
    n = min(row.known, len(prompt))
    different = np.flatnonzero(np.array(row.tokens[:n]) != prompt[:n])
    return int(different[0] if len(different) else n) // BLOCK * BLOCK


def _rotations(theta: float, context: int, size: int) -> tuple[Float32Array, Float32Array]:
    """Cosines and sines of each position, shape (context, size of a head)."""
    frequencies = theta ** (-np.arange(0, size, 2) / size)
    angles = np.outer(np.arange(context), np.concatenate([frequencies, frequencies]))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _rotated(x: Float32Array, cosines: Float32Array, sines: Float32Array) -> Float32Array:
    half = x.shape[-1] // 2
    turned: Float32Array = x * cosines
    turned[..., :half] -= x[..., half:] * sines[..., :half]
    turned[..., half:] += x[..., :half] * sines[..., half:]
    return turned


def _mixed(scores: Float32Array, values: Float32Array) -> Float32Array:
    """Return the values weighted by the softmax of the scores; overwrites the scores."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    mixed: Float32Array = scores @ values
    mixed /= scores.sum(axis=-1, keepdims=True)
    return mixed
