"""GRPO: a model that writes is trained on comparisons of its answers to the same prompt.

Algorithm (Shao et al., "DeepSeekMath", 2024)::

    repeat
        group streams play the same episode, each with its own texts, until ``episodes`` have ended
        A    <- (return - mean of the group) / standard deviation of the group      for all tokens
        rho  <- pi(token) / pi_old(token)
        k3   <- pi_ref / pi - log(pi_ref / pi) - 1       at each drawn token: an estimate of KL(pi || pi_ref)
        epochs times, minibatch by minibatch: a step of Adam down
            mean over all tokens of the minibatch of
                - min(rho A, clip(rho, 1 - clip, 1 + clip) A) + kl k3 - entropy H(pi)

The standard deviation is that of a sample: its square is a sum divided by ``group`` - 1. A group of equal
returns has no gradient; ``flat_groups`` is the share of such groups. The loss is divided by the tokens of the
minibatch: division by those of each text would favour long wrong texts. In an environment of many steps, all
texts of an episode share its advantage. Where actions are listed, the model chooses
among them by their likelihood, and the KL divergence is exact.

With one gradient step per update, the default, rho is 1 but for episodes that began before the last update,
so the clip hardly acts; it does with more ``epochs``, or a smaller ``batch_size``. In 16 bits rho begins a
few percent off 1, because drawing and judging round differently, and the clip acts on some tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hunch.methods.method import Method
from hunch.methods.policy.glam import WALKS
from hunch.methods.tune.agent import (
    FlatConfig,
    GroupConfig,
    ListedConfig,
    MixedTextsConfig,
    RegularisedConfig,
    WritingAgent,
)
from hunch.ranges import LATER, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from hunch.rl.settings import UpdateConfig


@dataclass(frozen=True, kw_only=True)
class GRPOConfig(MixedTextsConfig, ListedConfig, FlatConfig, GroupConfig, RegularisedConfig):
    """Settings of group-relative policy optimisation."""

    group: PositiveInt = 8
    """Answers to one prompt: this many parallel environments begin each episode with the same seed (paper:
    64)."""
    kl: NonNegativeFloat = 0.04
    """Weight of the KL divergence from the reference (paper)."""
    kl_in: Literal["loss", "reward"] = field(default="loss", metadata=LATER)
    """Where the KL divergence counts: in the loss (paper), or in the reward of each token."""
    epochs: PositiveInt = 1
    """Passes over the texts of an update (paper)."""
    batch_size: NonNegativeInt = 0
    """Texts per gradient step; 0 for all texts of an update."""
    clip: PositiveFloat = 0.2
    """Clipping range of the ratio of new to old probability (PPO). With one gradient step per update, the
    default, the ratio is 1 and the clip hardly acts: it does with more epochs, or a smaller batch-size."""
    clip_high: PositiveFloat | None = None
    """Clipping range of ratios above 1; none for the same range as --clip."""


class GRPO(WritingAgent):
    """The agent of GRPO."""

    config_class: ClassVar[type[Any]] = GRPOConfig

    def objective(self) -> UpdateConfig:
        """Return the objective of GRPO, and how it is optimised."""
        c = self.config
        return UpdateConfig(
            # A = (return - mean of the group) / standard deviation of the group, for each token.
            advantage="group",
            unit="token",
            gamma=1.0,
            whiten=False,  # not standardised once more
            # - min(rho A, clip(rho) A), entropy, and the KL divergence from the reference.
            clip=c.clip,
            clip_high=c.clip_high,
            entropy=c.entropy,
            kl=c.kl,
            kl_in=c.kl_in,
            kl_aim=c.kl_aim,
            stop_kl=c.stop_kl,
            stop_entropy=c.stop_entropy,
            # Passes of Adam over the texts of the update.
            epochs=c.epochs,
            batch_size=c.batch_size,
            micro=c.micro,
            learning_rate=c.learning_rate,
            max_norm=1.0,  # of the gradient (ours)
        )


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
