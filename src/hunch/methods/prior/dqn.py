"""DQN over admissible actions (Mnih et al., 2015): DQN-Prior with nothing in the prior's role.

Every line is shared with :mod:`hunch.methods.prior.dqn_prior`; C^k(s) is the whole set of admissible
actions, each as likely as the other.
"""

from __future__ import annotations

from typing import Any

from hunch.lm.base import LanguageModel
from hunch.methods.prior.dqn_prior import DQNPrior, QLearningConfig
from hunch.methods.prior.proposals import encoder_table
from hunch.roles.encoder import TextTable
from hunch.roles.prior import UniformPrior


class DQN(DQNPrior):
    """The agent of DQN.

    Args:
        encoder: Embeds texts for Q; frozen. Default: ``minilm``.
        config: All settings; ``options`` change single ones.
    """

    def __init__(
        self, encoder: TextTable | None = None, config: QLearningConfig | None = None, **options: Any
    ) -> None:
        super().__init__(UniformPrior(), encoder, config or QLearningConfig(), **options)


def build(config: QLearningConfig, lm: LanguageModel) -> DQN:
    """DQN asks no language model; ``lm`` only lends its embeddings where it is the configured encoder."""
    return DQN(encoder_table(config, lm), config)
