"""Offline DQN: offline DQN-Prior with nothing in the prior's role, over all admissible actions."""

from __future__ import annotations

from typing import Any

from hunch.lm.base import LanguageModel
from hunch.methods.prior.offline_dqn_prior import OfflineDQNPrior
from hunch.methods.prior.proposals import QConfig, encoder_table
from hunch.roles.encoder import TextTable
from hunch.roles.prior import UniformPrior


class OfflineDQN(OfflineDQNPrior[QConfig]):
    """The agent of offline DQN.

    Args:
        encoder: Embeds texts for Q; frozen. Default: ``minilm``.
        config: All settings; ``options`` change single ones.
    """

    def __init__(
        self, encoder: TextTable | None = None, config: QConfig | None = None, **options: Any
    ) -> None:
        super().__init__(UniformPrior(), encoder, config or QConfig(), **options)


def build(config: QConfig, lm: LanguageModel) -> OfflineDQN:
    """Offline DQN asks no language model; ``lm`` only lends its embeddings where it is the encoder."""
    return OfflineDQN(encoder_table(config, lm), config)
