"""TWOSOME: a language model is the policy, with normalised probabilities; only adapters are trained.

Algorithm (Tan et al., "True Knowledge Comes from Practice: Aligning LLMs with Embodied Environments via
Reinforcement Learning", ICLR 2024)::

    for each state
        pi(a|s)  <- softmax over the admissible a of log p_LM(a | prompt(s)) / length(a)    words, or tokens
        a        ~  pi(.|s)
    every horizon steps: PPO
        first on V(s), a perceptron on the last hidden state of the model without its adapters
        then on pi, by its adapters only, until it has moved by target_kl

The longer an action is, the smaller is its summed log-probability, so long actions would hardly ever be
tried; dividing by the length makes actions of all lengths comparable. It is :mod:`hunch.methods.policy.glam`
with three differences: division by length, the input of the value, and adapters.

Departures: the prompt is that of all priors here; adapters are on every linear layer of the model, while the
release has them on queries and values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from hunch.core import UsageError
from hunch.lm.base import Normalisation
from hunch.methods.method import Method
from hunch.methods.policy.glam import GLAM, WALKS, GLAMConfig
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.rl.policy import Part
from hunch.rl.settings import UpdateConfig

if TYPE_CHECKING:
    from hunch.roles.policy.language import LMPolicy


@dataclass(frozen=True, kw_only=True)
class TWOSOMEConfig(GLAMConfig):
    """Settings of a language model as the policy, with trained adapters."""

    lm: str = ""
    """Causal model to train, hf:<name or folder>?train=lora. Default: a small one of this project."""
    normalise: Normalisation = "word"
    """Divide an action's log-probability by nothing (sum), its tokens or its words (paper: tokens or
    words)."""
    gae: Share = 0.95
    """Lambda of generalised advantage estimation (released code)."""
    horizon: PositiveInt = 32
    """Steps per stream between updates (released code)."""
    epochs: PositiveInt = 1
    """Passes over these steps per update (released code)."""
    batch_size: PositiveInt = 32
    """Steps per gradient step of the adapters (released code: 4, accumulated over eight)."""
    value_batch_size: PositiveInt = 32
    """Steps per gradient step of the value (our choice)."""
    learning_rate: PositiveFloat = 1e-3
    """Adam learning rate of the adapters of a small model (our choice; released code: 5e-7 for 7 billion)."""
    value_rate: NonNegativeFloat = 1e-3
    """Adam learning rate of the value (our choice; released code: 1e-5)."""
    value: NonNegativeFloat = 0.5
    """Not to be set: the value is learnt in gradient steps of its own, so its error needs no weight."""
    target_kl: NonNegativeFloat = 0.02
    """Stop an update once the KL divergence from the old policy exceeds this; 0 for never (released code)."""
    warmup: NonNegativeInt = 0
    """Environment steps at the start in which only values are learnt (released code: 5,000 as an option)."""


class TWOSOME(GLAM):
    """The agent of TWOSOME."""

    config_class: ClassVar[type[Any]] = TWOSOMEConfig
    default = f"{WALKS}&train=lora"

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Refuse a weight of the value, which would change nothing, before a model is loaded."""
        super().check(config, specs)
        if config.value != TWOSOMEConfig.value:
            raise UsageError(
                "twosome learns the value in gradient steps of its own, so that its error needs no weight: "
                "leave value out; its learning rate is value_rate."
            )

    def make_policy(self, seed: int) -> LMPolicy:
        """Return the policy, whose value reads the model without its adapters."""
        from hunch.roles.policy.language import LMPolicy  # loads torch

        return LMPolicy(self.lm, self.config, seed, frozen_value=True)

    def objective(self) -> UpdateConfig:
        """Return PPO's objective, with the value's own minibatches and learning rate, and early stopping."""
        c = self.config
        return replace(
            super().objective(),
            value_batch_size=c.value_batch_size,
            value_rate=c.value_rate,
            target_kl=c.target_kl,
        )

    def parts(self) -> tuple[Part, ...]:
        """Return what the next update trains: first the value, and then, after the warmup, the adapters."""
        if self.steps <= self.config.warmup:
            return ("value",)
        return ("value", "policy")


METHOD = Method(
    "twosome",
    TWOSOME,
    "a language model is the policy, normalised by length, and PPO trains adapters",
    "Tan et al., True Knowledge Comes from Practice: Aligning LLMs with Embodied Environments via "
    "Reinforcement Learning, ICLR 2024",
    leaf="LLM4RL / policy",
    lm=WALKS,
    roles=("policy",),
    data="none",
)
