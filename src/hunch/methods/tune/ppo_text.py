"""PPO on texts: a model that writes is trained token by token, with a learnt value; RL4LMs and InstructGPT.

Algorithm (Ramamurthy et al., "Is Reinforcement Learning (Not) for Natural Language Processing?", ICLR 2023;
Ouyang et al., "Training language models to follow instructions with human feedback", NeurIPS 2022)::

    r  <- -kl (log pi - log reference) per token, plus the environment's reward at the last one
    A  <- generalised advantages from r and V, a value for each token
    repeat epochs times: PPO's clipped step over tokens  [+ ptx times the likelihood of given texts]
    after each update: kl <- kl (1 + 0.1 clip((KL - kl_aim) / kl_aim, -0.2, 0.2))          if there is an aim

The value is a perceptron on the model's hidden states, and its error does not train the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from hunch.methods.tune.agent import WRITES, WritingAgent, WritingConfig
from hunch.methods.tune.grpo import METHOD as GRPO
from hunch.ranges import NonNegativeFloat, NonNegativeInt, Share

VALUED: Mapping[str, Any] = {
    **WRITES,
    "listed": True,
    "advantage": "gae",
    "unit": "token",
    "group": 1,
    "clip_high": None,
    "whiten": True,
}
"""Settings that are fixed in methods which learn a value per token."""


@dataclass(frozen=True, kw_only=True)
class PPOTextConfig(WritingConfig):
    """Settings of PPO over the tokens of texts."""

    gae: Share = 0.95
    """Lambda of generalised advantage estimation (paper)."""
    kl: NonNegativeFloat = 0.1
    """Weight of the KL divergence from the reference (RL4LMs; InstructGPT: 0.02)."""
    kl_in: Literal["loss", "reward"] = "reward"
    """Where the KL divergence counts: in the reward of each token (paper), or in the loss."""
    batch_size: NonNegativeInt = 32
    """Texts per gradient step (our choice); 0 for all texts of an update."""


class PPOText(WritingAgent):
    """The agent of PPO on texts."""

    config_class: ClassVar[type[Any]] = PPOTextConfig
    fixed: ClassVar[Mapping[str, Any]] = VALUED


METHOD = replace(
    GRPO,
    name="ppo-text",
    agent_class=PPOText,
    summary="a model that writes is trained by PPO over tokens, regularised towards a reference",
    paper="Ramamurthy et al., Is Reinforcement Learning (Not) for Natural Language Processing: Benchmarks, "
    "Baselines, and Building Blocks for Natural Language Policy Optimization, ICLR 2023",
    environments="free text",
    acts="text",
)
