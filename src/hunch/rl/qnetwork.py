"""Q(s, a) over embedded states and actions: a three-layer perceptron, and its target network."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


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
