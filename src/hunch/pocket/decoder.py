"""The pocket model's decoder: a Llama decoder in NumPy that writes many prompts in lockstep.

Calls of functions cost a small model more time than its multiplications. So prompts are read several
blocks at a time, cached blocks are reused, and the next tokens of all texts are computed together.

Answers do not depend on other prompts or on earlier requests, bit for bit: a block always starts at a
multiple of its length and is padded to it, and texts are read in fixed numbers of rows. The blocks per
product are as many as a test at loading allows: no bit may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, TypeAlias

import numpy as np

from hunch.core import FloatArray
from hunch.lm.base import Float32Array
from hunch.lm.scoring.recent import Prefixes, block_keys
from hunch.lm.scoring.trie import Tokens
from hunch.lm.scoring.writer import Draft, Text, Way
from hunch.lm.speech import Sampling

BLOCK: Final = 24
"""Tokens per block: a multiple of the rows that kernels process together, so that a token's position in the
block alone determines how its row is computed."""
BLOCKS: Final = (1, 2, 3, 4, 5, 6, 7, 8)
"""Possible numbers of blocks that are read together, where no bit changes."""
WIDTH: Final = 4
"""Texts that read a token together; missing rows are padded. Two passes of 4 are faster than one of 8."""
MOST_TEXTS: Final = 128
"""Maximum number of texts whose keys and values are in memory at the same time."""
PREFIX_CACHE: Final = 2**28
"""Maximum size in bytes of cached keys and values of prompts."""
DISTRIBUTIONS: Final = 2**27
"""Maximum size in bytes of cached next-token distributions: 40,000 for the vocabulary of the households."""


Pair: TypeAlias = tuple[Float32Array, Float32Array]
"""Keys and values, or cosines and sines."""
_LATER: Final = np.triu(np.full((BLOCK, BLOCK), -np.inf, np.float32), 1)
"""Added to the scores of a block's tokens, so that none sees a later one."""


class Group:
    """Texts after one prompt (:class:`hunch.lm.scoring.writer.Group`), which share its keys and values.

    Attributes:
        keys: Keys of the prompt, shape (layers, heads, tokens, head size); ``values`` likewise.
        written: Keys and values of the tokens after the prompt, shape
            (2, layers, heads, texts, tokens, head size).
        texts: The texts.
        prompt: Number of tokens of the prompt.
    """

    def __init__(self, prompt: int, keys: Float32Array, room: int) -> None:
        self.prompt, self.keys, self.values = prompt, keys, np.zeros_like(keys)
        layers, heads, _, size = keys.shape
        self.written = np.empty((2, layers, heads, 1, room, size), np.float32)
        self.texts: Sequence[Text] = [()]

    @property
    def size(self) -> int:
        """Size of the keys and values in bytes."""
        return 2 * self.keys.nbytes + self.written.nbytes

    def follow(self, texts: Sequence[Text]) -> None:
        """Prepare for texts that are one token longer than before, or that start again after the prompt."""
        read = len(texts[0]) - 1
        rows = {text if read else (): row for row, text in enumerate(self.texts)}
        taken = [rows[text[:-1]] for text in texts]
        if taken != list(range(len(self.texts))):
            before = self.written
            *outer, _, room, size = before.shape
            self.written = np.empty((*outer, len(taken), room, size), np.float32)
            self.written[..., :read, :] = before[..., taken, :read, :]
        self.texts = texts


class Decoder:
    """A Llama decoder with the weights of a model of the transformers library.

    Attributes:
        computed: Number of prompt tokens computed so far.
        saved: Number of prompt tokens whose results were cached.
        width: Maximum number of texts that are written together.

    Args:
        network: A ``LlamaForCausalLM`` with tied embeddings and equal numbers of key and query heads.
    """

    width = MOST_TEXTS

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
        padded = -(-self.context // BLOCK) * BLOCK
        self.cosines, self.sines = _rotations(config.rope_parameters["rope_theta"], padded, self.size)
        self.computed = self.saved = 0
        self.prefixes = Prefixes(PREFIX_CACHE)
        layer = self.weights[0]
        products = (layer.qkv, layer.out, layer.gate_up, layer.down)
        self.blocks = max(takewhile(lambda n: _alike(n, products), BLOCKS), default=1)

    def way(self, prompt: Tokens, room: int) -> Way:
        """Return how texts after a prompt are computed, which is always together."""
        return Way("lockstep", MOST_TEXTS)

    def begin(self, prompt: Tokens, way: Way, rows: int, room: int) -> tuple[Group, Float32Array]:
        """Read a prompt of at least one token; return its group, and the logits of the next token."""
        start = (len(prompt) - 1) // BLOCK * BLOCK
        end = start + BLOCK
        shape = (self.layers, self.heads, end, self.size)
        group = Group(len(prompt), np.zeros(shape, np.float32), room)
        names = block_keys(prompt[:start], BLOCK)
        known = self.prefixes.known(names)
        for i, ((keys, values),) in enumerate(known):
            group.keys[:, :, i * BLOCK : (i + 1) * BLOCK] = keys
            group.values[:, :, i * BLOCK : (i + 1) * BLOCK] = values
        first = len(known) * BLOCK
        self.saved, self.computed = self.saved + first, self.computed + len(prompt) - first
        for at in range(first, end, self.blocks * BLOCK):
            x = self._read(group, prompt, at, min(at + self.blocks * BLOCK, end))
        fresh = [
            [(group.keys[:, :, at : at + BLOCK].copy(), group.values[:, :, at : at + BLOCK].copy())]
            for at in range(first, start, BLOCK)
        ]
        self.prefixes.keep(names, [*known, *fresh])
        last = len(prompt) - 1 - start
        return group, self._logits(x[last : last + 1])[0]

    def _read(self, group: Group, prompt: Tokens, start: int, end: int) -> Float32Array:
        """Compute the keys and values of blocks; the last is padded with its own first token.

        Returns:
            The output of the last layer for the last block, shape (tokens, width).
        """
        tokens = prompt[start:end]
        padding = prompt[(end - 1) // BLOCK * BLOCK]
        turns = self.cosines[start:end], self.sines[start:end]
        x: Float32Array = self.embedding[[*tokens, *[padding] * (end - start - len(tokens))]]
        parts = [slice(at, min(at + BLOCK, end)) for at in range(start, end, BLOCK)]
        for i, layer in enumerate(self.weights):
            q, k, v = self._project(layer, x, turns)
            keys, values = group.keys[i], group.values[i]
            keys[:, start:end], values[:, start:end] = k, v
            if i == self.layers - 1:  # nothing after it needs the other blocks
                x, parts = x[parts[-1].start - start :], parts[-1:]
            mixed = [_attended(q[:, p.start - start : p.stop - start], keys, values, p) for p in parts]
            x = self._finish(layer, x, np.concatenate(mixed, axis=1))
        return x

    def advance(self, groups: Sequence[Group]) -> list[Float32Array]:
        """Read the last token of all texts in the groups; return the logits of the next tokens, per group."""
        rows = [(group, row) for group in groups for row in range(len(group.texts))]
        logits: list[Float32Array] = []
        for start in range(0, len(rows), WIDTH):
            logits += self._advance(rows[start : start + WIDTH])
        return logits

    def _advance(self, rows: Sequence[tuple[Group, int]]) -> list[Float32Array]:
        free = [0] * (WIDTH - len(rows))
        texts = [group.texts[row] for group, row in rows]
        places = [group.prompt + len(text) - 1 for (group, _), text in zip(rows, texts, strict=True)]
        turns = self.cosines[[*places, *free]], self.sines[[*places, *free]]
        x: Float32Array = self.embedding[[*(text[-1] for text in texts), *free]]
        mixed, runs = np.zeros((self.heads, WIDTH, self.size), np.float32), list(_runs(rows))
        for i, layer in enumerate(self.weights):
            q, k, v = self._project(layer, x, turns)
            for group, texts_read, part in runs:
                keys, values = group.written[:, i, :, texts_read, : len(group.texts[0])]
                keys[:, :, -1], values[:, :, -1] = k[:, part], v[:, part]
                shared = group.keys[i, :, : group.prompt], group.values[i, :, : group.prompt]
                mixed[:, part] = _continued(q, part, shared, (keys, values))
            x = self._finish(layer, x, mixed)
        return [row.copy() for row in self._logits(x)[: len(rows)]]

    @staticmethod
    def draw(rows: Sequence[Float32Array], sampling: Sampling, drafts: Sequence[Draft]) -> list[int]:
        """Draw the next token of each draft from its distribution, with the draft's random generator."""
        drawn = zip(logprobs_of(np.stack(rows)), drafts, strict=True)
        return [pick(logprobs, sampling, draft.rng) for logprobs, draft in drawn]

    def _logits(self, x: Float32Array) -> Float32Array:
        """Return the logits of the token after each, shape (tokens, vocabulary)."""
        logits: Float32Array = self._normed(x) @ self.unembedding
        return logits

    def _project(
        self, layer: _Layer, x: Float32Array, turns: Pair
    ) -> tuple[Float32Array, Float32Array, Float32Array]:
        """Queries, keys and values, each of shape (heads, tokens, size of a head), turned by their place."""
        parts = (self._normed(x) @ layer.qkv).reshape(len(x), 3 * self.heads, self.size).transpose(1, 0, 2)
        both = 2 * self.heads
        turned = _rotated(parts[:both], *turns)
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


def pick(logprobs: FloatArray, sampling: Sampling, rng: np.random.Generator) -> int:
    """Draw a token from log-probabilities of shape (vocabulary,) with temperature and top-p."""
    if sampling.temperature == 0:
        return int(logprobs.argmax())
    shares = np.exp((logprobs - logprobs.max()) / sampling.temperature)
    if sampling.top_p < 1:
        order = np.argsort(-shares, kind="stable")
        before = np.cumsum(shares[order]) - shares[order]
        shares[order[before >= sampling.top_p * shares.sum()]] = 0.0
    edges = np.cumsum(shares)
    return int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))


def logprobs_of(logits: Float32Array) -> FloatArray:
    """Return the log-probabilities of each row of logits."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    logprobs: FloatArray = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
    return logprobs


def _alike(together: int, products: Sequence[Float32Array]) -> bool:
    """Return whether a product has the same bits for a block of rows alone and among others, at any place."""
    chance, most = np.random.default_rng(0), max(BLOCKS)
    for weight in products:
        blocks = chance.standard_normal((most, BLOCK, len(weight)), dtype=np.float32)
        wanted = np.stack([block @ weight for block in blocks])
        for order in (chance.permutation(most)[:together] for _ in range(4)):
            product = np.concatenate(blocks[order]) @ weight
            if not np.array_equal(product.reshape(together, BLOCK, -1), wanted[order]):
                return False
    return True


def _runs(rows: Sequence[tuple[Group, int]]) -> Iterator[tuple[Group, slice, slice]]:
    """Yield each group, its rows within it, and their places among all."""
    start = 0
    for n in range(1, len(rows) + 1):
        if n == len(rows) or rows[n][0] is not rows[start][0]:
            group, first = rows[start]
            yield group, slice(first, first + n - start), slice(start, n)
            start = n


def _attended(q: Float32Array, keys: Float32Array, values: Float32Array, block: slice) -> Float32Array:
    """Return the attention's output of a block, whose tokens see themselves and those before."""
    scores = q @ keys[:, : block.stop].transpose(0, 2, 1)
    tokens = block.stop - block.start
    scores[:, :, block.start :] += _LATER[:tokens, :tokens]
    return _mixed(scores, values[:, : block.stop])


def _continued(q: Float32Array, part: slice, prompt: Pair, new: Pair) -> Float32Array:
    """Return the attention's output of texts, whose tokens see the prompt and the text's own keys and values.

    The prompt's share is computed for all rows of the pass, so that a row has the same bits in any company.
    """
    length = prompt[0].shape[1]
    scores = np.zeros((*q.shape[:2], length + new[0].shape[2]), np.float32)
    np.matmul(q, prompt[0].transpose(0, 2, 1), out=scores[:, :, :length])
    scores[:, part, length:] = (q[:, part, None] @ new[0].transpose(0, 1, 3, 2))[:, :, 0]
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    mixed: Float32Array = (scores[:, :, :length] @ prompt[1])[:, part]
    mixed += (scores[:, part, None, length:] @ new[1])[:, :, 0]
    mixed /= scores[:, part].sum(axis=-1, keepdims=True)
    return mixed


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
