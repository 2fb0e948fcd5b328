"""Outputs of a model in training for options and texts, with gradients.

This module imports torch and transformers, so import it only where such a model is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from torch import Tensor

from hunch.core import IntArray
from hunch.lm.scoring.trie import Tree

Row: TypeAlias = tuple[list[int], Tree]
"""The tokens that an encoder reads, and the tree of a causal model or of a decoder."""


class OptionOutputs(NamedTuple):
    """A model's output for a prompt and its options, with gradients.

    Attributes:
        logprobs: Log-probability of each option, summed over its tokens; shape (n_options,).
        tokens: Number of tokens of each option, shape (n_options,).
        state: Last hidden state of the prompt's last token, shape (dim,); of a decoder its first state.
    """

    logprobs: Tensor
    tokens: IntArray
    state: Tensor


class TokenOutputs(NamedTuple):
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
