"""CQL-Prior: conservative Q-learning from recorded data, confined to a language model's proposals.

Algorithm (Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025,
section 4.3, eq. 7; conservative Q-learning is Kumar et al., NeurIPS 2020)::

    for each update, on a batch of recorded (s, a, r, s')
        C^k(s), C^k(s')  <- k draws each from p_LM                            the prior's proposals
        y     <- r + gamma * max over a' in C^k(s') of Q_target(s', a')
        L     <- 0.5 (Q(s, a) - y)^2 + beta (log sum over b in C^k(s) of exp Q(s, b) - Q(s, a))
        descend on L;  Q_target <- Q_target + rate * (Q - Q_target)
    act by softmax(Q(s, a_i) / alpha) over a_i in C^k(s)

It learns from data alone; the environment only evaluates it. With all admissible actions as candidates what
remains is CQL, and without the second term offline DQN-Prior.

The recorded action need not be among C^k(s). The second term can then fall without bound as Q(s, a) rises,
and only the first one holds it; the paper's loss is no different.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hunch.lm.base import LanguageModel
from hunch.methods.prior.offline_dqn_prior import OfflineDQNPrior
from hunch.methods.prior.proposals import ProposalConfig, QConfig, encoder_table
from hunch.rl.replay import Batch
from hunch.roles.prior_config import build_prior


@dataclass(frozen=True, kw_only=True)
class CQLConfig(QConfig):
    """What CQL and CQL-Prior share."""

    beta: float = 5.0
    """Weight of the conservative term (paper)."""


@dataclass(frozen=True, kw_only=True)
class CQLPriorConfig(ProposalConfig, CQLConfig):
    """CQL-Prior."""


class CQLPrior(OfflineDQNPrior[CQLConfig]):
    """The agent of CQL-Prior; arguments as of :class:`~hunch.methods.prior.proposals.ProposalQ`."""

    defaults = CQLPriorConfig

    def _loss(self, batch: Batch) -> Tensor:
        return super()._loss(batch) + self.config.beta * conservatism(
            self.candidates(batch), self.taken(batch)
        )


def conservatism(candidates: Tensor, taken: Tensor) -> Tensor:
    """Mean of log sum over b of exp Q(s, b) - Q(s, a).

    Args:
        candidates: Q(s, b), padded with -inf, shape (n, candidates).
        taken: Q(s, a) of the recorded actions, shape (n,).
    """
    return (torch.logsumexp(candidates, dim=1) - taken).mean()


def build(config: CQLPriorConfig, lm: LanguageModel) -> CQLPrior:
    """Fill the prior's role with a language model, and embed with the configured encoder."""
    table = encoder_table(config, lm)
    return CQLPrior(build_prior(config.prior, lm, table), table, config)
