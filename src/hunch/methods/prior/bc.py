"""Behaviour cloning over admissible actions, on the same frozen features and network as the Q-learners.

The network's values are logits: maximum likelihood of the recorded action under their softmax over all
admissible actions is the conservative term of :mod:`hunch.methods.prior.cql_prior` alone. Rewards are not
looked at. A baseline of CQL-Prior in Yan et al., ICLR 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from hunch.lm.base import LanguageModel
from hunch.methods.prior.cql_prior import conservatism
from hunch.methods.prior.offline_dqn_prior import OfflineDQNPrior
from hunch.methods.prior.proposals import QConfig, encoder_table
from hunch.rl.replay import Batch
from hunch.roles.encoder import TextTable
from hunch.roles.prior import UniformPrior


@dataclass(frozen=True, kw_only=True)
class BCConfig(QConfig):
    """Behaviour cloning; it has no use for ``gamma`` and the target network."""

    alpha: float = 1.0
    """Temperature of the cloned policy; 1 is the one that was fitted."""


class BC(OfflineDQNPrior[BCConfig]):
    """The agent of behaviour cloning.

    Args:
        encoder: Embeds texts; frozen. Default: ``minilm``.
        config: All settings; ``options`` change single ones.
    """

    def __init__(
        self, encoder: TextTable | None = None, config: BCConfig | None = None, **options: Any
    ) -> None:
        super().__init__(UniformPrior(), encoder, config or BCConfig(), **options)

    def _loss(self, batch: Batch) -> Tensor:
        return conservatism(self.candidates(batch), self.taken(batch))


def build(config: BCConfig, lm: LanguageModel) -> BC:
    """Cloning asks no language model; ``lm`` only lends its embeddings where it is the encoder."""
    return BC(encoder_table(config, lm), config)
