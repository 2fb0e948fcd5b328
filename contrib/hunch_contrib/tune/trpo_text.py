"""TRPO on texts: as PPO on texts, with the largest step that a bound on the policy's divergence allows.

The step is in :mod:`hunch_contrib.tune.trpo`: conjugate gradients and a line search (Schulman et al., ICML
2015). Rewards and advantages are as in :mod:`hunch.methods.tune.ppo_text`; ``epochs`` and ``batch_size`` are
those of the value's training. The metric ``accepted`` is the share of updates whose line search found a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from hunch.methods.tune.ppo_text import METHOD as PPO_TEXT
from hunch.methods.tune.ppo_text import VALUED, PPOText, PPOTextConfig
from hunch.ranges import PositiveInt
from hunch_contrib.tune.trpo_settings import TrustRegionConfig

if TYPE_CHECKING:
    from hunch.rl.policy_gradient import PolicyGradient


@dataclass(frozen=True, kw_only=True)
class TRPOTextConfig(PPOTextConfig, TrustRegionConfig):
    """Settings of TRPO over the tokens of texts."""

    epochs: PositiveInt = 10
    """Passes over the texts of an update in which the value is trained (RL4LMs)."""


class TRPOText(PPOText):
    """The agent of TRPO on texts."""

    config_class: ClassVar[type[Any]] = TRPOTextConfig
    fixed: ClassVar[Mapping[str, Any]] = {
        **{**VALUED, "kl_in": "reward", "clip": 0.2, "ptx": 0.0, "texts": "", "clip_value": False},
        **{"cg_steps": 15, "backtracks": 10},
    }

    def make_learner(self) -> PolicyGradient:
        """Return the update of TRPO."""
        from hunch_contrib.tune.trpo import TrustRegion  # loads torch

        return TrustRegion(self.policy, self.config)


METHOD = replace(
    PPO_TEXT,
    name="trpo-text",
    agent_class=TRPOText,
    summary="a model that writes is trained by TRPO's natural gradient and line search",
)
