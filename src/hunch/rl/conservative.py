"""Conservative Q-learning lowers the values of actions that are not in the data.

The loss of a batch of recorded transitions (Kumar et al., "Conservative Q-Learning for Offline Reinforcement
Learning", NeurIPS 2020)::

    L  <-  1/2 mean (Q(s, a) - y)^2  +  beta mean [ log sum over a' in C(s) of exp Q(s, a')  -  Q(s, a) ]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hunch.core import IntArray
from hunch.rl.q_learning import Batch, CandidateSets, Features, QLearner, forward


class ConservativeLearner(QLearner):
    """A Q-learner with the conservative term.

    Args:
        features: Vectors of the numbered states.
        seed: Seed of the weights.
        beta: Weight of the conservative term.
        floor: Include the recorded action in the candidates of the term, so that it is never negative.
        **options: Further settings of the update; see :class:`~hunch.rl.q_learning.QLearner`.
    """

    def __init__(
        self, features: Features, seed: int, *, beta: float, floor: bool = False, **options: Any
    ) -> None:
        super().__init__(features, seed, **options)
        self.beta = beta
        self.floor = floor

    def loss(self, q: Tensor, batch: Batch, candidates: CandidateSets) -> Tensor:
        """Return the loss, the Bellman error plus the conservative term, as a scalar.

        Args:
            q: Q(s, a) with gradients, shape (n,).
            batch: The n transitions.
            candidates: Returns their candidate sets.
        """
        bellman_loss = super().loss(q, batch, candidates)
        if not self.beta:
            return bellman_loss
        sets = candidates(batch.state, batch.candidates)  # C(s) of each state
        if self.floor:  # C(s) and a
            sets = [np.union1d(indices, action) for indices, action in zip(sets, batch.action, strict=True)]
        # beta mean [ log sum over a' in C(s) of exp Q(s, a')  -  Q(s, a) ]
        log_sum_exp = torch.logsumexp(self.padded(batch.state, sets), dim=1)  # (n,)
        return bellman_loss + self.beta * (log_sum_exp - q).mean()

    def padded(self, states: IntArray, candidates: Sequence[IntArray]) -> Tensor:
        """Return Q of each state's candidates, shape (n, max. candidates), padded with -inf."""
        lengths = torch.tensor([len(indices) for indices in candidates])  # (n,)
        mask = torch.arange(int(lengths.max())) < lengths[:, None]  # (n, max. candidates)
        q = forward(self.network, self.features, states, candidates)  # (total candidates,)
        return torch.full(mask.shape, -torch.inf).masked_scatter(mask, q)
