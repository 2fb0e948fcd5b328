"""GRPO: a model that writes is trained on comparisons of its answers to the same prompt.

Algorithm (Shao et al., "DeepSeekMath", 2024)::

    group streams play the same episode, each with its own texts
        A  <- (return - mean of the group) / standard deviation of the group      for all tokens
    maximise  min(ratio A, clip(ratio) A) - kl estimate of KL(pi || reference)    over all tokens

A group of equal returns has no gradient; ``flat_groups`` is the share of such groups. The loss is divided
by the tokens of the batch: division by those of each text would favour long wrong texts. In an environment
of many steps, all texts of an episode share its advantage. Where actions are listed, the model chooses
among them by their likelihood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hunch.methods.method import Method
from hunch.methods.policy.glam import WALKS
from hunch.methods.tune.agent import WRITES, WritingAgent, WritingConfig
from hunch.ranges import NonNegativeFloat, PositiveInt

COMPARES: Mapping[str, Any] = {**WRITES, "gae": 1.0, "value": 0.0, "width": 8, "whiten": False}
"""Settings that are fixed in methods which compare the answers of a group and learn no value."""


@dataclass(frozen=True, kw_only=True)
class GRPOConfig(WritingConfig):
    """Settings of group-relative policy optimisation."""

    group: PositiveInt = 8
    """Answers to one prompt: this many parallel environments begin each episode with the same seed (paper:
    64)."""
    kl: NonNegativeFloat = 0.04
    """Weight of the KL divergence from the reference (paper)."""
    epochs: PositiveInt = 1
    """Passes over the texts of an update (paper)."""


class GRPO(WritingAgent):
    """The agent of GRPO."""

    config_class: ClassVar[type[Any]] = GRPOConfig
    fixed: ClassVar[Mapping[str, Any]] = {**COMPARES, "advantage": "group", "unit": "token"}
    parts = ("policy",)


METHOD = Method(
    "grpo",
    GRPO,
    "a model that writes learns from how its answers compare with others to the same prompt",
    "Shao et al., DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models, 2024",
    leaf="RL4LLM / fine-tuning",
    environments="free text and listed actions",
    acts="any",
    reads={"raw"},
    optional={"raw"},
    lm=WALKS,
    roles=("policy",),
    data="none",
    changeable=("temperature",),
)
