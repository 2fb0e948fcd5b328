"""Offline DQN-Prior: DQN-Prior on recorded data, without exploration.

The loss is half of DQN-Prior's, 0.5 (Q(s, a) - y)^2 with y = r + gamma * max over a' in C^k(s') of
Q_target(s', a') (:mod:`hunch.methods.prior.dqn_prior`). The data are observed once, then each pass of the
loop makes one update. A baseline of CQL-Prior in Yan et al., and what every offline method here builds on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from hunch.core import Transition
from hunch.lm.base import LanguageModel
from hunch.methods.prior.proposals import C, ProposalConfig, ProposalQ, QConfig, encoder_table
from hunch.rl.replay import Batch
from hunch.roles.prior_config import build_prior


@dataclass(frozen=True, kw_only=True)
class OfflineDQNPriorConfig(ProposalConfig, QConfig):
    """Offline DQN-Prior."""


class OfflineDQNPrior(ProposalQ[C]):
    """The agent of offline DQN-Prior; arguments as of :class:`~hunch.methods.prior.proposals.ProposalQ`."""

    defaults: ClassVar[type[QConfig]] = OfflineDQNPriorConfig

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Take in recorded transitions; the prior is asked for all their states at once."""
        super().observe(transitions)
        if self.keep:
            going_on = [t.next_state for t in transitions if not t.terminated]
            self.propose([*(t.state for t in transitions), *going_on])

    def learn(self) -> dict[str, float]:
        """Make one update."""
        if not len(self.replay):
            return {}
        loss = self.descend(self._loss(self.replay.sample(self.config.batch_size, self.rng)))
        return self.prior.metrics() | {"loss": loss}

    def _loss(self, batch: Batch) -> Tensor:
        return 0.5 * torch.nn.functional.mse_loss(self.taken(batch), self.targets(batch))


def build(config: OfflineDQNPriorConfig, lm: LanguageModel) -> OfflineDQNPrior[QConfig]:
    """Fill the prior's role with a language model, and embed with the configured encoder."""
    table = encoder_table(config, lm)
    return OfflineDQNPrior(build_prior(config.prior, lm, table), table, config)
