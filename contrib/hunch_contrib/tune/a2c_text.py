"""A2C on texts: as PPO on texts, with one gradient step on each batch of texts and without clipping.

Algorithm (Ramamurthy et al., ICLR 2023; Mnih et al., ICML 2016)::

    r     <- -kl (log pi_old - log pi_ref) per token, plus the environment's reward at a text's last token
    A     <- sum over k of lambda^k delta, k tokens later,  delta = r + V(next token) - V;   R <- A + V
    one step of Adam down the mean over tokens of  - log pi(token) A + value 1/2 (V - R)^2

lambda, ``gae``, is 1. The step is taken on PPO's surrogate: at the first step the ratio is 1, so it has this
gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from hunch.methods.tune.agent import MixedTextsConfig, RegularisedConfig, ValueConfig, WritingAgent
from hunch.methods.tune.ppo_text import METHOD as PPO_TEXT
from hunch.ranges import NonNegativeFloat, PositiveInt, Share
from hunch.rl.settings import UpdateConfig


@dataclass(frozen=True, kw_only=True)
class A2CTextConfig(MixedTextsConfig, ValueConfig, RegularisedConfig):
    """Settings of A2C over the tokens of texts."""

    episodes: PositiveInt = 16
    """Episodes per update (our choice)."""
    gae: Share = 1.0
    """Lambda of generalised advantage estimation; 1 gives the returns minus the values (paper)."""
    kl_in: Literal["loss", "reward"] = "reward"
    """Where the KL divergence counts: in the reward of each token (paper), or in the loss."""
    value: NonNegativeFloat = 0.5
    """Weight of half the squared error of the value (CleanRL)."""


class A2CText(WritingAgent):
    """The agent of A2C on texts."""

    config_class: ClassVar[type[Any]] = A2CTextConfig

    def objective(self) -> UpdateConfig:
        """Return the objective of A2C."""
        return a2c(self.config)


def a2c(c: A2CTextConfig) -> UpdateConfig:
    """Return the objective of A2C over tokens, and how it is optimised."""
    return UpdateConfig(
        # A by GAE over the tokens, as it is.
        advantage="gae",
        unit="token",
        gamma=1.0,
        gae=c.gae,
        whiten=False,
        # log pi(token) A, the error of the value, the entropy, the KL divergence from the reference.
        clip_value=False,
        value=c.value,
        entropy=c.entropy,
        kl=c.kl,
        kl_in=c.kl_in,
        kl_aim=c.kl_aim,
        stop_kl=c.stop_kl,
        stop_entropy=c.stop_entropy,
        # One step of Adam on all texts of the update.
        epochs=1,
        batch_size=0,
        micro=c.micro,
        learning_rate=c.learning_rate,
        max_norm=1.0,
    )


METHOD = replace(
    PPO_TEXT,
    name="a2c-text",
    agent_class=A2CText,
    summary="a model that writes is trained by one step of the policy gradient per batch of texts",
)
