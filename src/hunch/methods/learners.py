"""The reinforcement learner inside methods that provide rewards or goals, chosen by one setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, runtime_checkable

from hunch.core import Agent, Transition, UsageError
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.policy.ppo import PPO, PPOConfig
from hunch.methods.prior.dqn import DQN
from hunch.methods.prior.dqn_prior import DQNConfig
from hunch.methods.q_learning import QLearning, QLearningConfig
from hunch.roles.encoder.features import TextTable

LEARNERS: Mapping[str, type[Any]] = {"table": QLearning, "dqn": DQN, "ppo": PPO}
"""Agent classes by the name of the learner; the learner's settings are in the field with the same name."""
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "table": tuple(entry.name for entry in fields(QLearningConfig)),
    "dqn": ("gamma", "learning_rate", "batch_size", "update_every", "warmup", "hidden", "alpha"),
    "ppo": ("gamma", "horizon", "batch_size", "learning_rate", "entropy", "hidden"),
}
"""Settings of each learner that the command line offers; the others can only be set in Python."""


@runtime_checkable
class Relearning(Protocol):
    """A learner that can learn again from earlier steps, whose rewards have changed; PPO cannot."""

    def relearn(self, transitions: Sequence[Transition]) -> None:
        """Learn from these steps in place of those before."""


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """Settings of the inner learner. Only the settings of the chosen learner may be changed."""

    learner: Literal["table", "dqn", "ppo"] = "table"
    """Inner learner: table (Q-learning over texts of states), or dqn or ppo (on embeddings of the texts)."""
    table: QLearningConfig = field(default_factory=QLearningConfig)
    """Settings of Q-learning in a table."""
    dqn: DQNConfig = field(default_factory=DQNConfig)
    """Settings of DQN."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """Settings of PPO."""
    encoder: str = "bag-of-words"
    """Frozen text encoder for DQN and PPO."""


def learner(config: LearnerConfig, encoder: LanguageModel | None) -> Agent:
    """Make the chosen learner.

    Args:
        config: All settings.
        encoder: Embeds states for DQN and PPO. Default: that of the config.

    Raises:
        UsageError: if settings of a learner that was not chosen were changed.
    """
    defaults = type(config)()
    for name in LEARNERS:
        if name != config.learner and getattr(config, name) != getattr(defaults, name):
            raise UsageError(f"{name} settings need learner={name!r}; it is {config.learner!r}.")

    if config.learner == "table":
        return QLearning(config.table)
    table = TextTable(load(config.encoder) if encoder is None else encoder)
    if config.learner == "dqn":
        return DQN(table, config.dqn)
    return PPO(table, config.ppo)
