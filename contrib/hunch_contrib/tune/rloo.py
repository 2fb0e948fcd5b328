"""RLOO: a model that writes is trained by REINFORCE, with a group's other answers as the baseline.

Algorithm (Ahmadian et al., "Back to Basics: Revisiting REINFORCE-Style Optimization", ACL 2024)::

    group streams play the same episode, each with its own texts
        R  <- return - kl (log pi - log reference), summed over the tokens,  - confidence pi_old(text)
        A  <- R - mean R of the others
    maximise  log pi(text) A                                          the whole text is one action

With one pass over one batch the ratio is 1, and PPO's clipped surrogate has this gradient.

pi_old is the policy when the text was written; among listed answers its probabilities sum to 1.

With ``confidence`` (ours) a model that chooses among answers learns how sure it may be. Let the return be 1
for the right answer and 0 for others, and p(a) the probability that the answer a is right. The mean reward of
a is then  p(a) - confidence pi(a),  and with confidence 1 the mean gradient is that of  - 1/2 |pi - p|^2,
which is minus half the Brier score but for a constant: it is highest where pi = p. A group's standard
deviation, by which GRPO divides, would spoil that: all differences would count alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from hunch.methods.tune.agent import (
    GroupConfig,
    ListedConfig,
    MixedTextsConfig,
    RegularisedConfig,
    WritingAgent,
)
from hunch.methods.tune.grpo import METHOD as GRPO
from hunch.ranges import LATER, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from hunch.rl.settings import GROUPED, UpdateConfig


@dataclass(frozen=True, kw_only=True)
class RLOOConfig(MixedTextsConfig, ListedConfig, GroupConfig, RegularisedConfig):
    """Settings of REINFORCE with a leave-one-out baseline."""

    advantage: Literal["leave_one_out", "self_critical", "returns"] = "leave_one_out"
    """Baseline: the mean of the group's others (leave_one_out), its first answer, which is then the greedy
    one (self_critical, Rennie et al., CVPR 2017), or none (returns, REINFORCE)."""
    group: PositiveInt = 4
    """Answers to one prompt: this many parallel environments begin each episode with the same seed (paper:
    2 and 4)."""
    kl: NonNegativeFloat = 0.05
    """Weight of the KL divergence from the reference (TRL)."""
    kl_in: Literal["loss", "reward"] = field(default="reward", metadata=LATER)
    """Where the KL divergence counts: in the reward (paper), or in the loss."""
    confidence: NonNegativeFloat = field(default=0.0, metadata=LATER)
    """Weight of the probability that the policy gave to its answer, which is subtracted from the return: with
    1, and 1 for a right answer, the probabilities become those of being right."""
    epochs: PositiveInt = 1
    """Passes over the texts of an update (paper)."""
    batch_size: NonNegativeInt = 0
    """Texts per gradient step; 0 for all texts of an update."""
    clip: PositiveFloat = 0.2
    """Clipping range of the ratio of new to old probability. With one gradient step per update, the default,
    the ratio is 1 and the clip hardly acts: it does with more epochs, or a smaller batch-size."""


class RLOO(WritingAgent):
    """The agent of RLOO."""

    config_class: ClassVar[type[Any]] = RLOOConfig

    @classmethod
    def compares(cls, config: Any) -> bool:
        """Return whether the advantage compares the answers of a group."""
        return bool(config.advantage in GROUPED)

    @property
    def greedy_first(self) -> bool:  # type: ignore[override]
        """True if the first answer of each group is greedy: the baseline of the others."""
        return bool(self.config.advantage == "self_critical")

    def objective(self) -> UpdateConfig:
        """Return the objective of RLOO, and how it is optimised."""
        c = self.config
        return UpdateConfig(
            # A = R - mean R of the others, or - R of the greedy answer; a text is one action.
            advantage=c.advantage,
            unit="text",
            gamma=1.0,
            whiten=False,
            confidence=c.confidence,
            # log pi(text) A as the clipped surrogate; the KL divergence is in R.
            clip=c.clip,
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
    name="rloo",
    agent_class=RLOO,
    summary="a model that writes learns by REINFORCE, with a group's other answers as the baseline",
    paper="Ahmadian et al., Back to Basics: Revisiting REINFORCE-Style Optimization for Learning from Human "
    "Feedback in LLMs, ACL 2024",
)
