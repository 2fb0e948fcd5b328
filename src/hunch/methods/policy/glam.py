"""GLAM: a language model is the policy, and learns by acting.

Algorithm (Carta et al., "Grounding Large Language Models in Interactive Environments with Online
Reinforcement Learning", ICML 2023; the agent is called GFlan there)::

    for each state
        pi(a|s)  <- softmax over the admissible a of log p_LM(a | prompt(s))     all actions in one pass
        V(s)     <- a perceptron on the hidden state of the prompt's last token
        a        ~  pi(.|s)
    every horizon steps: PPO on pi and V moves all weights of the model

Loop and update are those of :mod:`hunch.methods.policy.ppo`, of which the policy's role is filled here.
``start=random`` and ``start=shuffled`` are the controls: the same network without what it has read, and with
what it has read about other words.

Departures: a causal model by default, where the paper has an encoder and a decoder; the prompt is the one of
all priors here; log-probabilities are summed, where the release sums raw logits and counts padding as 1,
which favours long actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hunch.core import EvidenceLevel
from hunch.lm import trainable
from hunch.lm.base import LanguageModel
from hunch.methods.policy.ppo import PolicyAgent
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from hunch.rl.ppo import PPOConfig
from hunch.roles.policy import LMPolicy, LMPolicyConfig

WALKS = "pocket?corpus=walks"
"""Our own small model, for want of another one."""


@dataclass(frozen=True, kw_only=True)
class GLAMConfig(LMPolicyConfig, PPOConfig):
    """A language model as the policy, all of it trained."""

    lm: str = ""
    """Causal model or T5 to train, hf:<name or folder>; by default our own small one, pocket?corpus=walks."""
    gae: Share = 0.99
    """Decay of the advantage's sum over later steps, lambda (paper)."""
    horizon: PositiveInt = 40
    """Steps of each stream between two updates (paper)."""
    batch_size: PositiveInt = 64
    """Steps for each move of the weights (paper)."""
    micro: PositiveInt = 64
    """Steps computed at once; the gradients of a batch add up over them."""
    learning_rate: PositiveFloat = 3e-4
    """Of Adam, for a model of under a million weights (ours; paper: 1e-6, for 780 million)."""
    value: NonNegativeFloat = 0.5
    """Weight of the squared error of the value, halved (paper)."""
    width: PositiveInt = 128
    """Of the two layers of the value's perceptron (ours; paper: 1024)."""


class GLAM(PolicyAgent):
    """The agent of GLAM.

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, a setting out of range, or another kind of model.
        HunchError: if the model cannot be had.
    """

    config_class: ClassVar[type[Any]] = GLAMConfig
    fixed: ClassVar[Mapping[str, Any]] = {
        **{"separate": False, "kl": 0.0, "kl_end": None, "warmup": 0, "value_batch_size": 128}
    }
    apart: ClassVar[bool] = False
    """Whether the value is read off the model as it was before training."""
    default: ClassVar[str] = WALKS
    policy: LMPolicy

    def __init__(self, config: Any = None, **options: Any) -> None:
        own = configure(type(self), config, options)
        self.lm = trainable(own.lm or self.default)
        super().__init__(own)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """That of the model, or L0 where it begins without its weights."""
        return self.policy.evidence

    def make_policy(self, seed: int) -> LMPolicy:
        """The model as it was before all training."""
        return LMPolicy(self.lm, self.config, seed, apart=self.apart)


def build(agent: type[GLAM], config: GLAMConfig, models: Mapping[str, LanguageModel]) -> GLAM:
    """The model that is trained belongs to the agent; ``lm`` names it."""
    return agent(config)
