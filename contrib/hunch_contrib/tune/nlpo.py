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
from hunch.methods.tune.agent import MixedTextsConfig, RegularisedConfig, ValueConfig, WritingAgent
from hunch.methods.tune.ppo_text import METHOD as PPO_TEXT
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, PositiveShare
from hunch.rl.settings import UpdateConfig


@dataclass(frozen=True, kw_only=True)
class NLPOConfig(MixedTextsConfig, ValueConfig, RegularisedConfig):
    """Settings of natural language policy optimisation."""

    top_p: PositiveShare = 0.9
    """Total probability of the allowed tokens (paper: 0.9; 0.5 for translation)."""
    refresh: PositiveInt = 20
    """Updates between two copies of the policy (ours; paper: 5 to 100)."""
    epochs: PositiveInt = 4
    """Passes over the collected texts per update (CleanRL)."""
    batch_size: NonNegativeInt = 32
    """Texts per gradient step (our choice); 0 for all texts of an update."""
    clip: PositiveFloat = 0.2
    """Clipping range of the ratio of new to old probability, and of the change of the value (CleanRL)."""
    value: NonNegativeFloat = 0.5
    """Weight of half the squared error of the value (CleanRL)."""


class NLPO(WritingAgent):
    """The agent of NLPO."""

    config_class: ClassVar[type[Any]] = NLPOConfig
    saved = (*WritingAgent.saved, "copy")

    def objective(self) -> UpdateConfig:
        """Return the objective of PPO over tokens, and how it is optimised."""
        c = self.config
        return UpdateConfig(
            # A by GAE over the tokens, standardised in each minibatch.
            advantage="gae",
            unit="token",
            gamma=1.0,
            gae=c.gae,
            whiten=True,
            # The clipped surrogate, whose ratio is of the limited distributions, the value, the entropy; the
            # KL divergence of the unlimited distributions is in the reward of each token.
            clip=c.clip,
            clip_value=True,
            value=c.value,
            entropy=c.entropy,
            kl=c.kl,
            kl_in="reward",
            kl_aim=c.kl_aim,
            stop_kl=c.stop_kl,
            stop_entropy=c.stop_entropy,
            # Passes of Adam over the texts of the update.
            epochs=c.epochs,
            batch_size=c.batch_size,
            micro=c.micro,
            learning_rate=c.learning_rate,
            max_norm=1.0,
        )

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

        copies = {name: weight.clone() for name, weight in weights.items()}
        self.policy.within = Nucleus(copies, self.config.top_p)

    def learn(self) -> dict[str, float]:
        """Make the update if one is due, and renew the copy every ``refresh`` updates."""
        metrics = super().learn()
        if metrics and self.learner.updates % self.config.refresh == 0:
            self.copy = self.lm.state_dict()
        return metrics


METHOD = replace(
    PPO_TEXT,
    name="nlpo",
    agent_class=NLPO,
    summary="ppo-text whose tokens are limited to what an earlier copy of the policy finds likely",
)
