"""TRPO on texts: as PPO on texts, with the largest step that a bound on the policy's divergence allows.

The step is in :mod:`hunch_contrib.tune.trpo`: conjugate gradients and a line search (Schulman et al., ICML
2015). Rewards and advantages are as in :mod:`hunch.methods.tune.ppo_text`; ``epochs`` and ``batch_size`` are
those of the value's training. The metric ``accepted`` is the share of updates whose line search found a step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from hunch.methods.tune.agent import RegularisedConfig, ValueConfig, WritingAgent
from hunch.methods.tune.ppo_text import METHOD as PPO_TEXT
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch_contrib.tune.trpo_settings import TrustRegionConfig

if TYPE_CHECKING:
    from hunch.rl.policy_gradient import PolicyGradient


@dataclass(frozen=True, kw_only=True)
class TRPOTextConfig(ValueConfig, RegularisedConfig):
    """Settings of TRPO over the tokens of texts."""

    step_kl: PositiveFloat = 0.01
    """Maximum KL divergence from the old policy per token, in nats (paper)."""
    damping: NonNegativeFloat = 0.1
    """Constant that is added to the diagonal of the Fisher matrix (paper)."""
    shrink: Share = 0.8
    """Factor by which each step of the line search shortens the update (RL4LMs; paper's code: 0.5)."""
    epochs: PositiveInt = 10
    """Passes over the texts of an update in which the value is trained (RL4LMs)."""
    batch_size: NonNegativeInt = 32
    """Texts per gradient step of the value (our choice); 0 for all texts of an update."""


class TRPOText(WritingAgent):
    """The agent of TRPO on texts."""

    config_class: ClassVar[type[Any]] = TRPOTextConfig

    def objective(self) -> TrustRegionConfig:
        """Return the objective of TRPO over tokens, and how it is optimised."""
        c = self.config
        return TrustRegionConfig(
            # A by GAE over the tokens, standardised.
            advantage="gae",
            unit="token",
            gamma=1.0,
            gae=c.gae,
            whiten=True,
            # The step of the policy; the KL divergence from the reference is in the reward of each token.
            step_kl=c.step_kl,
            damping=c.damping,
            shrink=c.shrink,
            cg_steps=15,
            backtracks=10,
            entropy=c.entropy,
            kl=c.kl,
            kl_in="reward",
            kl_aim=c.kl_aim,
            stop_kl=c.stop_kl,
            stop_entropy=c.stop_entropy,
            # Passes of Adam on the value alone.
            clip_value=False,
            epochs=c.epochs,
            batch_size=c.batch_size,
            micro=c.micro,
            learning_rate=c.learning_rate,
            max_norm=1.0,
        )

    def make_learner(self) -> PolicyGradient:
        """Return the update of TRPO."""
        from hunch_contrib.tune.trpo import TrustRegion  # loads torch

        return TrustRegion(self.policy, self.objective())


METHOD = replace(
    PPO_TEXT,
    name="trpo-text",
    agent_class=TRPOText,
    summary="a model that writes is trained by TRPO's natural gradient and line search",
)
