"""DQN-Prior: Q-learning confined to the actions that a language model proposes; and DQN, the same code.

Algorithm (Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025,
section 4.2)::

    for each step
        C^k(s)  <- k draws from p_LM(. | s)                                   the prior's proposals
        a       ~  softmax(Q(s, a_i) / alpha) over a_i in C^k(s)              posterior exploration
        store (s, a, r, s')
        y       <- r + gamma * max over a' in C^k(s') of Q_target(s', a')     Bellman maximum over proposals
        descend on (Q(s, a) - y)^2;  Q_target <- Q_target + rate * (Q - Q_target)

As k grows the exploration rule converges to p_LM(a|s) exp(Q(s, a) / alpha) / Z, the policy that maximises
E[Q] - alpha KL(pi || p_LM) (Proposition 1).

The language model fills one role, the action prior. With :class:`hunch.roles.prior.UniformPrior` and
``k=None`` (all admissible actions) what remains is DQN.

Departures: states and actions are embedded apart by default, not as one text (``joint`` is the paper's); the
squared error is averaged over the batch, not summed; alpha divides Q, as in the paper's text, where the
released code multiplies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from hunch.core import FloatArray, Proposal
from hunch.lm.base import LanguageModel
from hunch.methods.prior.proposals import (
    ProposalConfig,
    ProposalQ,
    QConfig,
    encoder_table,
)
from hunch.rl.replay import Batch, Replay
from hunch.roles.prior_config import build_prior


@dataclass(frozen=True, kw_only=True)
class QLearningConfig(QConfig):
    """What DQN and DQN-Prior share; neither side has an option that the other lacks but k and the prior."""

    update_every: int = 2
    """Environment steps an update (released code: 40 updates a round)."""
    warmup: int = 500
    """Environment steps before the first update (ours)."""
    replay: int = 50_000
    """Transitions kept (ours)."""
    explore: Literal["posterior", "epsilon"] = "posterior"
    """Draw from softmax(Q / alpha) over the candidates, or act epsilon-greedily on them."""
    epsilon: tuple[float, float, int] = (1.0, 0.05, 5_000)
    """epsilon: from, to, and environment steps in between."""


@dataclass(frozen=True, kw_only=True)
class DQNPriorConfig(ProposalConfig, QLearningConfig):
    """DQN-Prior."""


class DQNPrior(ProposalQ[QLearningConfig]):
    """The agent of DQN-Prior; arguments as of :class:`~hunch.methods.prior.proposals.ProposalQ`."""

    defaults = DQNPriorConfig

    def memory(self) -> Replay:
        """The last ``replay`` transitions."""
        return Replay(self.config.replay)

    # ---- acting -------------------------------------------------------------------------------------

    def choose(self, proposal: Proposal, values: FloatArray, *, explore: bool) -> int:
        """Draw from the posterior, or be epsilon-greedy."""
        if self.config.explore == "posterior":
            return super().choose(proposal, values, explore=explore)
        if explore and self.rng.random() < self.epsilon():
            return int(self.rng.choice(proposal.indices))
        return int(proposal.indices[int(np.argmax(values))])

    def epsilon(self) -> float:
        """The share of random actions now, falling linearly."""
        start, end, over = self.config.epsilon
        return start + (end - start) * min(1.0, self.steps / max(1, over))

    # ---- learning -----------------------------------------------------------------------------------

    def learn(self) -> dict[str, float]:
        """Make the updates that are due: one in ``update_every`` environment steps."""
        due = max(0, self.steps - self.config.warmup) // self.config.update_every
        losses = []
        while self.updates < due:
            losses.append(self.descend(self._loss(self.replay.sample(self.config.batch_size, self.rng))))
        return self.prior.metrics() | ({"loss": float(np.mean(losses))} if losses else {})

    def _loss(self, batch: Batch) -> Tensor:
        """(Q(s, a) - y)^2, averaged over the batch."""
        return torch.nn.functional.mse_loss(self.taken(batch), self.targets(batch))


def build(config: DQNPriorConfig, lm: LanguageModel) -> DQNPrior:
    """Fill the prior's role with a language model, and embed with the configured encoder."""
    table = encoder_table(config, lm)
    return DQNPrior(build_prior(config.prior, lm, table), table, config)
