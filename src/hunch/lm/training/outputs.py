"""Outputs of a model in training for options and texts, with gradients, and their positions in a pass.

This module imports torch and transformers, so import it only where such a model is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from hunch.core import IntArray
from hunch.lm.scoring.engine import edges
from hunch.lm.scoring.trie import Tree

Row: TypeAlias = tuple[list[int], Tree]
"""The tokens that an encoder reads, and the tree of a causal model or of a decoder."""


class Answer(NamedTuple):
    """A model's output for a prompt and its options, with gradients.

    Attributes:
        logprobs: Log-probability of each option, summed over its tokens; shape (n_options,).
        tokens: Number of tokens of each option, shape (n_options,).
        state: Last hidden state of the prompt's last token, shape (dim,); of a decoder its first state.
    """

    logprobs: Tensor
    tokens: IntArray
    state: Tensor


class Judged(NamedTuple):
    """A model's outputs for n texts of at most T tokens, with gradients; 0 where the mask is False.

    Attributes:
        logprobs: Log-probability of each token, shape (n, T), natural logarithm.
        entropy: Entropy of the distribution of each token, shape (n, T), in nats.
        states: Last hidden state from which each token was predicted, shape (n, T, dim).
        mask: True where a text has a token, shape (n, T).
        free: With a nucleus: log-probabilities without the limit, shape (n, T), without gradients.
    """

    logprobs: Tensor
    entropy: Tensor
    states: Tensor
    mask: Tensor
    free: Tensor | None = None


class Nucleus(NamedTuple):
    """The most likely tokens with total probability ``top_p`` under other ``weights`` of the model (NLPO)."""

    weights: Mapping[str, Tensor]
    top_p: float


def sums(logits: Tensor, trees: Sequence[Tree]) -> Sequence[Tensor]:
    """Return the log-probability of each path of each tree, the sum over its tokens.

    Args:
        logits: Logits at the last tokens of each tree, shape (trees, tokens, vocabulary).
        trees: The trees, which end at the last token.
    """
    lengths = [len(path) for tree in trees for path in tree.paths]
    owner = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths)).to(logits.device)
    each = edges(logits, trees, logits.shape[1])
    summed = each.new_zeros(len(lengths)).index_add(0, owner, each)
    return torch.split(summed, [len(tree.paths) for tree in trees])


def places(trees: Sequence[Tree], owners: Sequence[Sequence[int]]) -> tuple[Tensor, ...]:
    """Return the positions where the tokens of each path are predicted, given trees and numbers of paths.

    Returns:
        The row of each path, shape (paths, 1), and of each token: the position that predicts it,
        counted from the end of the row, the token, and a mask; shape (paths, longest path).
    """
    found = {
        i: (row, [(edge - len(tree.tokens), token) for edge, token in path])
        for row, (tree, own) in enumerate(zip(trees, owners, strict=True))
        for i, path in zip(own, tree.paths, strict=True)
    }
    row, paths = zip(*(found[i] for i in range(len(found))), strict=True)
    steps = torch.nn.utils.rnn.pad_sequence([*map(torch.tensor, paths)], True, padding_value=-1)
    return torch.tensor(row)[:, None], steps[..., 0], steps[..., 1].clamp(min=0), steps[..., 1] >= 0
