"""The learner inside methods that provide rewards or goals, chosen by one setting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hunch.core import Agent
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.policy.ppo import PPO, PPOConfig
from hunch.methods.prior.dqn import DQN
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.q_learning import QLearning, QLearningConfig
from hunch.roles.encoder.features import TextTable


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """The learner that is trained on the rewards."""

    learner: Literal["table", "dqn", "ppo"] = "table"
    """Q-learning in a table over texts of states, or DQN or PPO on their embeddings."""
    table: QLearningConfig = field(default_factory=QLearningConfig)
    """Settings of the table."""
    dqn: DQNPriorConfig = field(default_factory=DQNPriorConfig)
    """Settings of DQN, except those that its method fixes."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """Settings of PPO, except those that its method fixes."""
    encoder: str = "bag-of-words"
    """Frozen text encoder for DQN and PPO."""


def learner(config: LearnerConfig, encoder: LanguageModel | None) -> Agent:
    """Make the learner of a config."""
    if config.learner == "table":
        return QLearning(config.table)
    table = TextTable(load(config.encoder) if encoder is None else encoder)
    return DQN(table, config.dqn) if config.learner == "dqn" else PPO(table, config.ppo)
