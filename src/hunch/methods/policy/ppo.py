"""PPO: proximal policy optimisation on embedded texts; the baseline of GLAM and its variants.

Loop and update are in :mod:`hunch.methods.policy.agent`; here two perceptrons on frozen embeddings are the
policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hunch.core import EvidenceLevel
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.method import ENCODER, Method
from hunch.methods.policy.agent import PolicyAgent, PolicyConfig
from hunch.methods.settings import filled, models_of
from hunch.ranges import PositiveInt
from hunch.roles.encoder.features import TextTable

if TYPE_CHECKING:
    from hunch.roles.policy.perceptron import PerceptronPolicy


@dataclass(frozen=True, kw_only=True)
class PPOConfig(PolicyConfig):
    """Settings of PPO on embedded texts."""

    hidden: PositiveInt = 64
    """Width of the perceptrons' hidden layers (CleanRL)."""
    encoder: str = "phrases"
    """Frozen text encoder, given by its spec."""
    standardise: bool = True
    """Standardise the embeddings of states by their running mean and standard deviation (our choice)."""


class PPO(PolicyAgent):
    """PPO with perceptrons on embedded texts.

    Args:
        encoder: Embeds texts; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.
    """

    config_class = PPOConfig
    policy: PerceptronPolicy

    def __init__(
        self, encoder: TextTable | None = None, config: PPOConfig | None = None, **options: Any
    ) -> None:
        super().__init__(config, **options)
        table = TextTable(load(self.config.encoder)) if encoder is None else encoder
        self.table = filled(table, "encode")
        self.models = models_of(encoder=self.table)

    @classmethod
    def build(cls, config: PPOConfig, models: Mapping[str, LanguageModel]) -> PPO:
        """Make the agent; the model ``encoder`` embeds texts."""
        return cls(TextTable(models["encoder"]), config)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """None: the frozen encoder fills no role."""
        return None

    def make_policy(self, seed: int) -> PerceptronPolicy:
        """Return untrained perceptrons on embeddings."""
        from hunch.roles.policy.perceptron import PerceptronPolicy  # loads torch

        return PerceptronPolicy(self.table, self.config.hidden, seed)

    def learn(self) -> dict[str, float]:
        """Make an update if one is due; its states then enter the running mean and standard deviation."""
        states = [step.transition.state for stream in self.kept.streams() for step in stream]
        metrics = super().learn()
        if metrics and self.config.standardise:
            self.policy.update_moments(states)
        return metrics


METHOD = Method(
    "ppo",
    PPO,
    "proximal policy optimisation on embedded texts; the baseline of glam and its variants",
    "Schulman et al., Proximal Policy Optimization Algorithms, 2017",
    models=ENCODER,
    data="none",
)
