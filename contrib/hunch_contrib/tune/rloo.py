"""RLOO: a model that writes is trained by REINFORCE, with a group's other answers as the baseline.

Algorithm (Ahmadian et al., "Back to Basics: Revisiting REINFORCE-Style Optimization", ACL 2024)::

    group streams play the same episode, each with its own texts
        R  <- return - kl (log pi - log reference), summed over the tokens
        A  <- R - mean R of the others
    maximise  log pi(text) A                                          the whole text is one action

With one pass over one batch the ratio is 1, and PPO's clipped surrogate has this gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from hunch.methods.tune.agent import WritingAgent, WritingConfig
from hunch.methods.tune.grpo import COMPARES
from hunch.methods.tune.grpo import METHOD as GRPO
from hunch.ranges import NonNegativeFloat, PositiveInt
from hunch.rl.settings import Kind


@dataclass(frozen=True, kw_only=True)
class RLOOConfig(WritingConfig):
    """Settings of REINFORCE with a leave-one-out baseline."""

    advantage: Kind = "leave_one_out"
    """Baseline: the mean of the group's others (leave_one_out), or its first answer, which is then the
    greedy one (self_critical, Rennie et al., CVPR 2017)."""
    group: PositiveInt = 4
    """Answers to one prompt: this many parallel environments begin each episode with the same seed (paper:
    2 and 4)."""
    kl: NonNegativeFloat = 0.05
    """Weight of the KL divergence from the reference (TRL)."""
    kl_in: Literal["loss", "reward"] = "reward"
    """Where the KL divergence counts: in the reward (paper), or in the loss."""
    epochs: PositiveInt = 1
    """Passes over the texts of an update (paper)."""


class RLOO(WritingAgent):
    """The agent of RLOO."""

    config_class: ClassVar[type[Any]] = RLOOConfig
    fixed: ClassVar[Mapping[str, Any]] = {**COMPARES, "unit": "text", "clip_high": None}
    parts = ("policy",)


METHOD = replace(
    GRPO,
    name="rloo",
    agent_class=RLOO,
    summary="a model that writes learns by REINFORCE, with a group's other answers as the baseline",
    paper="Ahmadian et al., Back to Basics: Revisiting REINFORCE-Style Optimization for Learning from Human "
    "Feedback in LLMs, ACL 2024",
)
