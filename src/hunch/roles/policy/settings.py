"""The settings of policies that are language models; this module does not import torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hunch.lm.base import Normalisation
from hunch.ranges import LATER, NonNegativeInt, PositiveFloat, PositiveInt

Start: TypeAlias = Literal["weights", "shuffled", "random"]


@dataclass(frozen=True, kw_only=True)
class LMPolicyConfig:
    """Settings of a language model as a policy over listed actions."""

    normalise: Normalisation = "sum"
    """Divide an action's log-probability by nothing (sum), its number of tokens or its number of words."""
    temperature: PositiveFloat = 1.0
    """Temperature of the softmax over the admissible actions."""
    listed: bool = field(default=True, metadata=LATER)
    """List the admissible actions in the prompt. If off, the prompt is only the transcript, and the end token
    of an action counts."""
    width: PositiveInt = 1024
    """Width of the two layers of the value's perceptron (paper)."""
    start: Start = "weights"
    """Initial weights: those of the model, the same with shuffled vocabulary, or random. The last two are
    controls."""


@dataclass(frozen=True, kw_only=True)
class TextPolicyConfig:
    """Settings of a policy that writes its actions."""

    max_tokens: PositiveInt = 32
    """Maximum number of tokens per text, including the end token."""
    width: NonNegativeInt = 128
    """Width of the two hidden layers of the value's perceptron (ours); 0 for a policy without a value."""
    start: Start = "weights"
    """Initial weights: those of the model, the same with shuffled vocabulary, or random. The last two are
    controls."""
