"""NLPO: PPO on texts whose tokens are limited to the likely ones of an older copy of the policy.

Algorithm (Ramamurthy et al., ICLR 2023)::

    before each token: allowed <- the likeliest tokens with the share top_p under the copy, and end tokens
    text ~ pi among the allowed tokens; the update's ratio is that of the same limited distributions
    PPO as in :mod:`hunch.methods.tune.ppo_text`; the KL divergence is that of the unlimited distributions
    every refresh updates: the copy <- the policy

With a top_p of 1 this is PPO exactly. Departure: the limits of an update are computed again from the copy
instead of stored; in an episode that was begun before the copy was renewed they may differ from those of
the draw, and the tokens that were drawn stay allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hunch.core import World
from hunch.methods.tune.ppo_text import METHOD as PPO_TEXT
from hunch.methods.tune.ppo_text import VALUED, PPOText, PPOTextConfig
from hunch.ranges import PositiveInt, Share


@dataclass(frozen=True, kw_only=True)
class NLPOConfig(PPOTextConfig):
    """Settings of natural language policy optimisation."""

    top_p: Share = 0.9
    """Total probability of the allowed tokens (paper: 0.9; 0.5 for translation)."""
    refresh: PositiveInt = 20
    """Updates between two copies of the policy (ours; paper: 5 to 100)."""


class NLPO(PPOText):
    """The agent of NLPO."""

    config_class: ClassVar[type[Any]] = NLPOConfig
    fixed: ClassVar[Mapping[str, Any]] = {**VALUED, "kl_in": "reward"}
    saved = (*PPOText.saved, "copy")

    def begin(self, world: World, seed: int) -> None:
        """Restore the initial weights, also of the copy."""
        super().begin(world, seed)
        self.copy = self.lm.state_dict()

    @property
    def copy(self) -> dict[str, Any]:
        """The weights of the copy, by name."""
        return dict(self.policy.within.weights) if self.policy.within else {}

    @copy.setter
    def copy(self, weights: Mapping[str, Any]) -> None:
        from hunch.lm.training import Nucleus  # loads torch

        own = {name: weight.clone() for name, weight in weights.items()}
        self.policy.within = Nucleus(own, self.config.top_p)

    def learn(self) -> dict[str, float]:
        """Make the update if one is due, and renew the copy every ``refresh`` updates."""
        told = super().learn()
        if told and self.learner.updates % self.config.refresh == 0:
            self.copy = self.lm.state_dict()
        return told


METHOD = replace(
    PPO_TEXT,
    name="nlpo",
    agent_class=NLPO,
    summary="ppo-text whose tokens are limited to what an earlier copy of the policy finds likely",
)
