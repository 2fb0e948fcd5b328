"""GLAM: a language model is the policy, and is trained online by PPO.

Algorithm (Carta et al., "Grounding Large Language Models in Interactive Environments with Online
Reinforcement Learning", ICML 2023; the agent is called GFlan there)::

    for each state
        pi(a|s)  <- softmax over the admissible a of log p_LM(a | prompt(s))     all actions in one pass
        V(s)     <- a perceptron on the hidden state of the prompt's last token
        a        ~  pi(.|s)
    every horizon steps of each stream
        delta_t <- r_t + gamma V(s_t+1) - V(s_t)
        A_t     <- sum over k of (gamma lambda)^k delta_t+k;  R_t <- A_t + V(s_t)          lambda is ``gae``
        epochs times, minibatch by minibatch: a step of Adam on all weights of the model, down
            - mean min(rho A, clip(rho) A) + value 1/2 mean (V - R)^2 - entropy mean H(pi)
            where rho = pi / pi_old, A is standardised per minibatch, and V is clipped to V_old +- clip

This file provides the policy. Loop and update are those of PPO, :mod:`hunch.methods.policy.agent`. The
value's error has a gradient in the weights of the model too, not only in those of its perceptron.
``start=random`` and ``start=shuffled`` are the controls: the same network without its training, and with its
training assigned to other words.

Departures: the default model is causal, while the paper's has an encoder and a decoder; the prompt is that of
all priors here; log-probabilities are summed, while the release sums raw logits and counts padding as 1,
which favours long actions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from hunch.core import EvidenceLevel
from hunch.lm import trainable
from hunch.methods.method import Method
from hunch.methods.policy.agent import PolicyAgent, PolicyConfig
from hunch.ranges import MEMORY, NonNegativeFloat, PositiveFloat, PositiveInt, Share
from hunch.roles.policy.settings import LMPolicyConfig
from hunch.roles.prior.language import WORDING

if TYPE_CHECKING:
    from hunch.roles.policy.language import LMPolicy

WALKS = "pocket?corpus=walks"
"""Spec of the default model, a small one trained by this project."""


@dataclass(frozen=True, kw_only=True)
class GLAMConfig(LMPolicyConfig, PolicyConfig):
    """Settings of a language model as the policy, with all weights trained."""

    lm: str = ""
    """Causal model to train, hf:<name or folder>. Default: pocket?corpus=walks, made by this project."""
    gae: Share = 0.99
    """Lambda of generalised advantage estimation (paper)."""
    horizon: PositiveInt = 40
    """Steps per stream between updates (paper)."""
    batch_size: PositiveInt = 64
    """Steps per gradient step (paper, with 32 environments). An update has horizon steps of each environment:
    with one, that is 40, and each epoch is one gradient step whatever larger number stands here."""
    micro: PositiveInt = field(default=64, metadata=MEMORY)
    """Steps per forward and backward pass; gradients are accumulated over a batch (our choice)."""
    learning_rate: PositiveFloat = 3e-4
    """Adam learning rate, for under a million weights (our choice; paper: 1e-6 for 780 million)."""
    value: NonNegativeFloat = 0.5
    """Weight of half the squared error of the value in the loss (paper)."""
    width: PositiveInt = 128
    """Width of the two layers of the value's perceptron (our choice; paper: 1024)."""


class GLAM(PolicyAgent):
    """The agent of GLAM.

    Args:
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, a setting out of range, or another kind of model.
        HunchError: if the model cannot be loaded.
    """

    config_class: ClassVar[type[Any]] = GLAMConfig
    default: ClassVar[str] = WALKS
    policy: LMPolicy

    def __init__(self, config: Any = None, **options: Any) -> None:
        super().__init__(config, **options)
        self.lm = trainable(self.config.lm or self.default)
        self.models = {"lm": self.lm}
        self.policy = self.make_policy(0)  # refuses settings that do not fit the model

    @property
    def wording(self) -> str:
        """The version of the prompts."""
        return WORDING

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the model; L0 if training starts from random or shuffled weights."""
        return self.policy.evidence

    def make_policy(self, seed: int) -> LMPolicy:
        """Return the policy with the model's initial weights."""
        from hunch.roles.policy.language import LMPolicy  # loads torch

        return LMPolicy(self.lm, self.config, seed)


METHOD = Method(
    "glam",
    GLAM,
    "a language model is the policy, and PPO trains all its weights",
    "Carta et al., Grounding Large Language Models in Interactive Environments with Online Reinforcement "
    "Learning, ICML 2023",
    leaf="LLM4RL / policy",
    lm=WALKS,
    roles=("policy",),
    data="none",
)
