"""Conservative Q-learning lowers the values of actions that are not in the data (Kumar et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hunch.core import IntArray
from hunch.rl.q_learning import Batch, Candidates, Features, QLearner, forward


class ConservativeLearner(QLearner):
    """A Q-learner with the conservative term log sum exp Q(s, .) - Q(s, a).

    Args:
        features: Vectors of the numbered states.
        seed: Seed of the weights.
        beta: Weight of the conservative term.
        floor: Include the recorded action in the candidates of the term, so that it is never negative.
        bellman: Add the Bellman error. Without it, this is behaviour cloning: the values are logits.
        **rule: Further settings of the update; see :class:`~hunch.rl.q_learning.QLearner`.
    """

    def __init__(
        self,
        features: Features,
        seed: int,
        *,
        beta: float,
        floor: bool = False,
        bellman: bool = True,
        **rule: Any,
    ) -> None:
        super().__init__(features, seed, **rule)
        self.beta, self.floor, self.bellman = beta, floor, bellman

    def loss(self, q: Tensor, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the loss of each transition of a batch; ``q`` is Q(s, a), shape (n,)."""
        loss = super().loss(q, batch, candidates) if self.bellman else torch.zeros(())
        if self.beta:
            own = candidates(batch.state, batch.candidates)
            if self.floor:
                own = [np.union1d(listed, action) for listed, action in zip(own, batch.action, strict=True)]
            loss = loss + self.beta * (torch.logsumexp(self.padded(batch.state, own), dim=1) - q).mean()
        return loss

    def padded(self, states: IntArray, candidates: Sequence[IntArray]) -> Tensor:
        """Return Q of each state's candidates, shape (n, max. candidates), padded with -inf."""
        lengths = torch.tensor([len(own) for own in candidates])
        there = torch.arange(int(lengths.max())) < lengths[:, None]
        q = forward(self.network, self.features, states, candidates)
        return torch.full(there.shape, -torch.inf).masked_scatter(there, q)
