"""Q(s, a) over embedded states and actions: a three-layer perceptron, and its target network."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import IntArray


class QNetwork(nn.Module):
    """A three-layer perceptron on the concatenation of a state's and an action's vector.

    The first layer of a concatenation is the sum of two linear maps, so the state's part is computed once
    a state and the action's part once a distinct action, however many pairs they form.

    Args:
        state_dim: Length of a state's vector; 0 where the action's vector already holds the pair.
        action_dim: Length of an action's vector.
        hidden: Width of both hidden layers.
    """

    def __init__(self, state_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.state_part = nn.Linear(state_dim, hidden) if state_dim else None
        self.action_part = nn.Linear(action_dim, hidden, bias=not state_dim)
        self.middle = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, states: Tensor, actions: Tensor, index: Tensor) -> Tensor:
        """Return Q of each state's candidates.

        Args:
            states: Shape (batch, state_dim).
            actions: The distinct actions, shape (distinct, action_dim).
            index: Which of them each state has as candidates, shape (batch, candidates).

        Returns:
            Shape (batch, candidates).
        """
        hidden = self.action_part(actions)[index]
        if self.state_part is not None:
            hidden = hidden + self.state_part(states).unsqueeze(1)
        hidden = torch.relu(self.middle(torch.relu(hidden)))
        values: Tensor = self.head(hidden).squeeze(-1)
        return values


def target_of(network: QNetwork) -> QNetwork:
    """Return a frozen copy, to bootstrap from."""
    return copy.deepcopy(network).requires_grad_(False)


@torch.no_grad()
def soft_update(target: nn.Module, source: nn.Module, rate: float) -> None:
    """Move the target's weights towards the source's by ``rate``; 1 copies them (Lillicrap et al., 2016)."""
    torch._foreach_lerp_(list(target.parameters()), list(source.parameters()), rate)


def in_order(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values in order of appearance, and the position of each value among them.

    The order decides the last bits of a matrix product. Numbers in the text table depend on what else the
    process has embedded; the order of appearance does not.
    """
    _, first, index = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return values.ravel()[first[order]], rank[index].reshape(values.shape)


def pad(rows: Sequence[IntArray]) -> IntArray:
    """Stack rows of unequal length, repeating each row's first entry."""
    width = max(len(row) for row in rows)
    stacked = np.empty((len(rows), width), dtype=np.int64)
    for i, row in enumerate(rows):
        stacked[i, : len(row)] = row
        stacked[i, len(row) :] = row[0]
    return stacked
