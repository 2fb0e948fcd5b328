"""The learner inside methods that provide rewards or goals, chosen by one setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from hunch.core import Agent, UsageError
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.policy.ppo import PPO, PPOConfig
from hunch.methods.prior.dqn import DQN
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.methods.q_learning import QLearning, QLearningConfig
from hunch.roles.encoder.features import TextTable

LEARNERS: Mapping[str, type[Any]] = {"table": QLearning, "dqn": DQN, "ppo": PPO}
"""The agents by the name of the learner, which is also that of their settings."""
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "table": tuple(entry.name for entry in fields(QLearningConfig)),
    "dqn": ("gamma", "learning_rate", "batch_size", "update_every", "warmup", "hidden", "alpha"),
    "ppo": ("gamma", "horizon", "batch_size", "learning_rate", "entropy", "hidden"),
}
"""Settings of each learner that are options of the command; the others are set in Python."""


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """The learner that is trained on the rewards. Only the settings of the chosen one may be changed."""

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
    """Make the learner of a config.

    Raises:
        UsageError: if settings of another learner were changed.
    """
    ours = type(config)()
    for name in LEARNERS:
        if name != config.learner and getattr(config, name) != getattr(ours, name):
            raise UsageError(f"{name} has settings of another learner; the learner is {config.learner}.")
    if config.learner == "table":
        return QLearning(config.table)
    table = TextTable(load(config.encoder) if encoder is None else encoder)
    return DQN(table, config.dqn) if config.learner == "dqn" else PPO(table, config.ppo)
