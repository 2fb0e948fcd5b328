"""The settings of language models as policies, without their code, which imports torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hunch.lm.base import Normalisation
from hunch.ranges import LATER, PositiveFloat, PositiveInt

Start: TypeAlias = Literal["weights", "shuffled", "random"]


@dataclass(frozen=True, kw_only=True)
class LMPolicyConfig:
    """A language model as a policy."""

    normalise: Normalisation = "sum"
    """Divisor of an action's log-probability: none, its tokens or its words."""
    temperature: PositiveFloat = 1.0
    """Temperature of the softmax over the admissible actions."""
    listed: bool = field(default=True, metadata=LATER)
    """Name the admissible actions in the prompt; otherwise the prompt is the bare transcript, and the end of
    an action's text counts."""
    width: PositiveInt = 1024
    """Width of the two layers of the value's perceptron (paper)."""
    start: Start = "weights"
    """Initial weights: the model's own, these with its vocabulary shuffled, or random ones; the latter two
    are controls."""


@dataclass(frozen=True, kw_only=True)
class TextPolicyConfig:
    """A language model that writes actions."""

    max_tokens: PositiveInt = 32
    """Maximum number of tokens of a text, with its end."""
    width: PositiveInt = 128
    """Width of the two layers of the value's perceptron."""
    start: Start = "weights"
    """Initial weights: the model's own, these with its vocabulary shuffled, or random ones; the latter two
    are controls."""
