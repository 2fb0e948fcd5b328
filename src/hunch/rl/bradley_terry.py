"""Rewards fitted to preferences: softmax(r1, r2) is the probability that the first item is preferred.

The model is that of Bradley and Terry (1952); the reward is the mean of small networks, as in Christiano et
al., "Deep Reinforcement Learning from Human Preferences" (NeurIPS 2017).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hunch.core import FloatArray

ENSEMBLE: Final = 3
"""Number of networks (Motif: 1)."""
HIDDEN: Final = 64
"""Width of the hidden layer (our choice)."""
EPOCHS: Final = 20
"""Passes over the pairs (Motif's code: 10)."""
BATCH: Final = 256
"""Pairs per update (Motif: 1024)."""
RATE: Final = 3e-3
"""Learning rate of Adam (Motif: 1e-5)."""


class RewardEnsemble:
    """A reward of vectors or pictures: the mean of networks that are fitted to preferences.

    Args:
        shape: Length of a vector, or the shape of a picture: (3, height, width).
        seed: Seed of the weights; each network gets different initial weights.
        weights: The weights of each network from :meth:`state_dict`, if they are to be restored.
    """

    def __init__(
        self, shape: int | tuple[int, int, int], seed: int, weights: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.networks = [_network(shape, seed + i) for i in range(ENSEMBLE)]
        for network, own_weights in zip(self.networks, weights, strict=False):
            network.load_state_dict(own_weights)

    def __call__(self, vectors: NDArray[np.float32]) -> FloatArray:
        """Return the mean of the networks, shape (n,)."""
        with torch.no_grad():
            x = torch.from_numpy(vectors)
            each = torch.stack([network(x).squeeze(-1) for network in self.networks])  # (ENSEMBLE, n)
            rewards: FloatArray = each.mean(0).numpy()
        return rewards.astype(np.float64)

    def fit(
        self,
        first: NDArray[np.float32],
        second: NDArray[np.float32],
        preferred: Sequence[float],
        rng: np.random.Generator,
        epochs: int = EPOCHS,
    ) -> None:
        """Minimise the cross-entropy; each network sees the pairs in a different order::

            p    = sigmoid(r(first) - r(second)),  which is softmax(r1, r2)[0]
            loss = - mean [ preferred log p + (1 - preferred) log (1 - p) ]

        Args:
            first: First vector or picture of each pair, shape (n, *shape).
            second: Second vector or picture of each pair, same shape.
            preferred: Preference for the first of each pair, from 0 to 1, shape (n,).
            rng: Random generator for the orders.
            epochs: Passes over the pairs.
        """
        x1 = torch.from_numpy(first)
        x2 = torch.from_numpy(second)
        target = torch.tensor(preferred)  # (n,)
        for network in self.networks:
            optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
            for _ in range(epochs):
                order = torch.from_numpy(rng.permutation(len(target)))
                for rows in torch.split(order, BATCH):
                    margin = (network(x1[rows]) - network(x2[rows])).squeeze(-1)  # (batch,): r1 - r2
                    loss = nn.functional.binary_cross_entropy_with_logits(margin, target[rows])
                    optimiser.zero_grad()
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimiser.step()

    def state_dict(self) -> list[dict[str, Any]]:
        """Return the weights of each network."""
        return [network.state_dict() for network in self.networks]


def _network(shape: int | tuple[int, int, int], seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(shape, int):
            return nn.Sequential(nn.Linear(shape, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
        eyes = nn.Sequential(  # patches of 8 x 8 pixels, and then those beside each other
            nn.Conv2d(3, 16, 8, stride=8), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten()
        )
        dim = eyes(torch.zeros(1, *shape)).shape[1]
        return nn.Sequential(eyes, nn.Linear(dim, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
