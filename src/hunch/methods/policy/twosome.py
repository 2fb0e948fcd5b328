"""TWOSOME: a language model is the policy, with normalised probabilities, and adapters learn.

Algorithm (Tan et al., "True Knowledge Comes from Practice: Aligning LLMs with Embodied Environments via
Reinforcement Learning", ICLR 2024)::

    for each state
        pi(a|s)  <- softmax over the admissible a of log p_LM(a | prompt(s)) / length(a)    words, or tokens
        a        ~  pi(.|s)
    every horizon steps: PPO
        first on V(s), a perceptron on the last hidden state of the model without its adapters
        then on pi, whose adapters alone are trained, until it has moved by target_kl

A sum of log-probabilities is the smaller the longer an action is, so that long actions are hardly ever tried;
dividing by the length puts actions of all lengths on a par. It is :mod:`hunch.methods.policy.glam` with these
three differences: the length, the value's place, and adapters.

Departures: the prompt is the one of all priors here; adapters stand beside every product of the model, where
the release has them at queries and values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hunch.lm.base import LanguageModel, Normalisation
from hunch.methods.policy.glam import GLAM, WALKS, GLAMConfig
from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveInt, Share


@dataclass(frozen=True, kw_only=True)
class TWOSOMEConfig(GLAMConfig):
    """A language model as the policy, with adapters that are trained."""

    lm: str = ""
    """Causal model to train, hf:<name or folder>?train=lora; by default our own small one."""
    normalise: Normalisation = "word"
    """What an action's log-probability is divided by: nothing, its tokens or its words (paper: the latter
    two)."""
    gae: Share = 0.95
    """Decay of the advantage's sum over later steps, lambda (released code)."""
    horizon: PositiveInt = 32
    """Steps of each stream between two updates (released code)."""
    epochs: PositiveInt = 1
    """Times that an update goes over these steps (released code)."""
    batch_size: PositiveInt = 32
    """Steps for each move of the adapters (released code: 4, eight of which add up)."""
    value_batch_size: PositiveInt = 32
    """Steps for each move of the value's weights (ours)."""
    learning_rate: PositiveFloat = 1e-3
    """Of Adam, for the adapters of a small model (ours; released code: 5e-7, for 7 billion weights)."""
    value_rate: NonNegativeFloat = 1e-3
    """The same for the value's weights (ours; released code: 1e-5)."""
    target_kl: NonNegativeFloat = 0.02
    """End an update once the policy has moved this far from the old one; 0 for never (released code)."""


class TWOSOME(GLAM):
    """The agent of TWOSOME."""

    config_class: ClassVar[type[Any]] = TWOSOMEConfig
    fixed: ClassVar[Mapping[str, Any]] = {"separate": True, "kl": 0.0, "kl_end": None}
    parts = ("value", "policy")
    apart = True
    default = f"{WALKS}&train=lora"


def build(agent: type[TWOSOME], config: TWOSOMEConfig, models: Mapping[str, LanguageModel]) -> TWOSOME:
    """The model that is trained belongs to the agent; ``lm`` names it."""
    return agent(config)
