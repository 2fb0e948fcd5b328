"""PPO on texts: a model that writes is trained token by token, with a learnt value; RL4LMs and InstructGPT.

Algorithm (Ramamurthy et al., "Is Reinforcement Learning (Not) for Natural Language Processing?", ICLR 2023;
Ouyang et al., "Training language models to follow instructions with human feedback", NeurIPS 2022)::

    repeat
        write ``episodes`` episodes; each token is an action with a value V before it
        r      <- -kl (log pi_old - log pi_ref) per token, plus the reward at a text's last token
        delta  <- r + V(next token) - V;   A <- sum over k of lambda^k delta, k tokens later;   R <- A + V
        rho    <- pi(token) / pi_old(token)
        epochs times, minibatch by minibatch: a step of Adam down the mean over tokens of
            - min(rho A, clip(rho, 1 - clip, 1 + clip) A) + value 1/2 max((V - R)^2, (V clipped - R)^2)
            [- ptx log p(given texts)]                                   A is standardised in each minibatch
        kl     <- kl (1 + 0.1 clip((KL - kl_aim) / kl_aim, -0.2, 0.2))                   if there is an aim

lambda is ``gae``. The value is a perceptron on the model's hidden states, and its error does not train the
model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from hunch.methods.tune.agent import MixedTextsConfig, RegularisedConfig, ValueConfig, WritingAgent
from hunch.methods.tune.grpo import METHOD as GRPO
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from hunch.rl.settings import UpdateConfig


@dataclass(frozen=True, kw_only=True)
class PPOTextConfig(MixedTextsConfig, ValueConfig, RegularisedConfig):
    """Settings of PPO over the tokens of texts."""

    kl_in: Literal["loss", "reward"] = "reward"
    """Where the KL divergence counts: in the reward of each token (paper), or in the loss."""
    epochs: PositiveInt = 4
    """Passes over the collected texts per update (CleanRL)."""
    batch_size: NonNegativeInt = 32
    """Texts per gradient step (our choice); 0 for all texts of an update."""
    clip: PositiveFloat = 0.2
    """Clipping range of the ratio of new to old probability, and of the change of the value (CleanRL)."""
    value: NonNegativeFloat = 0.5
    """Weight of half the squared error of the value (CleanRL)."""


class PPOText(WritingAgent):
    """The agent of PPO on texts."""

    config_class: ClassVar[type[Any]] = PPOTextConfig

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
            # The clipped surrogate, the clipped value, the entropy, the KL divergence from the reference.
            clip=c.clip,
            clip_value=True,
            value=c.value,
            entropy=c.entropy,
            kl=c.kl,
            kl_in=c.kl_in,
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
