"""Q-learning over candidate actions.

States and actions are vectors, Q(s, a) is a perceptron on both, and only the candidates C(s) of a state
count: all admissible actions, or those that a prior proposes. The loss is the squared Bellman error (Mnih et
al., Nature 2015). :mod:`hunch.rl.conservative` adds a term to it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hunch.core import FloatArray, IntArray, Saved


class Features(Protocol):
    """Vectors of numbered states, with their admissible actions as rows of one matrix."""

    state_dim: int
    action_dim: int

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of the states, shape (states, state_dim)."""

    @property
    def matrix(self) -> NDArray[np.float32]:
        """Vectors of the actions, shape (texts, action_dim)."""

    def rows(self, states: Iterable[int], candidates: Iterable[IntArray]) -> IntArray:
        """Rows of each state's candidates in the matrix, one state after the other, shape (n,)."""


class QNetwork(nn.Module):
    """A three-layer perceptron on the concatenation of a state's and an action's vector.

    Its first layer is computed as the sum of two linear maps, so that the part of each state and each
    distinct action is computed only once, however many pairs they form.
    """

    def __init__(self, state_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.state_part = nn.Linear(state_dim, hidden) if state_dim else None
        self.action_part = nn.Linear(action_dim, hidden, bias=not state_dim)
        self.middle = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, states: Tensor, actions: Tensor, owner: Tensor, index: Tensor) -> Tensor:
        """Return Q of pairs, shape (pairs,): pair i is state ``owner[i]`` with action ``index[i]``.

        States have shape (batch, state_dim), actions shape (texts, action_dim).
        """
        hidden = self.action_part(actions).index_select(0, index)
        if self.state_part is not None:
            hidden += self.state_part(states).index_select(0, owner)
        values: Tensor = self.head(self.middle(hidden.relu_()).relu_()).squeeze(-1)
        return values


class Batch(NamedTuple):
    """Transitions as columns of shape (n,): states by number, actions by index."""

    state: IntArray
    action: IntArray
    next_state: IntArray
    reward: FloatArray
    terminated: FloatArray
    candidates: IntArray  # C(s) as indices of a state's actions, shape (n, k), padded with -1
    following: IntArray  # C(s') in the same way


Row: TypeAlias = tuple[int, int, int, float, bool, Sequence[int], Sequence[int]]
"""A transition in the order of :class:`Batch`; candidate sets may be empty if they are stored elsewhere."""


class Replay:
    """The last ``capacity`` transitions, sampled uniformly with replacement (Lin, 1992).

    Args:
        capacity: Maximum number of transitions; the oldest is dropped when full.
        k: Maximum number of candidates stored with a state.
    """

    def __init__(self, capacity: int, k: int = 0) -> None:
        self.capacity, self.k, self.added = capacity, k, 0
        self.rows = np.zeros((1024, 5 + 2 * k))

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, row: Row) -> None:
        """Add one transition."""
        place, sets = self.added % self.capacity, np.full((2, self.k), -1)
        if place == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        for own, drawn in zip(sets, row[5:], strict=True):
            own[: len(drawn)] = drawn
        self.rows[place] = [*row[:5], *sets.flat]
        self.added += 1

    def sample(self, n: int, rng: np.random.Generator) -> Batch:
        """Draw n transitions."""
        drawn = self.rows[rng.integers(len(self), size=n)]
        state, action, following = drawn[:, :3].T.astype(np.int64)
        sets = np.split(drawn[:, 5:].astype(np.int64), 2, axis=1)
        return Batch(state, action, following, drawn[:, 3], drawn[:, 4], *sets)

    def state_dict(self) -> tuple[int, Tensor]:
        """Return the number of transitions added so far, and the rows."""
        return self.added, torch.from_numpy(self.rows[: len(self)])

    def load_state_dict(self, state: tuple[int, Tensor]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.added, filled = state
        self.k = (filled.shape[1] - 5) // 2
        self.rows = np.zeros((max(1024, 2 * len(filled)), filled.shape[1]))
        self.rows[: len(filled)] = filled.numpy()


Candidates: TypeAlias = Callable[[IntArray, IntArray], list[IntArray]]
"""Function that returns C(s) as action indices, given state numbers and stored candidates."""


class QLearner(Saved):
    """Q with its target network, replay buffer and update.

    Args:
        features: Vectors of the numbered states.
        seed: Seed of the weights.
        hidden: Width of the network's layers.
        learning_rate: Learning rate of Adam.
        gamma: Discount per step.
        data: Number of recorded transitions, for which there is room besides 50,000 others (our choice).
        k: Maximum number of candidates stored with a state.
        clip: Maximum gradient norm; 0 for no limit.
    """

    saved = ("network", "target", "optimiser", "replay", "updates")

    def __init__(
        self,
        features: Features,
        seed: int,
        *,
        hidden: int = 128,
        learning_rate: float = 5e-4,
        gamma: float = 0.9,
        data: int = 0,
        k: int = 0,
        clip: float = 0.0,
    ) -> None:
        self.features, self.gamma, self.clip, self.updates = features, gamma, clip, 0
        self.moves = (0.005, 1)  # how far the target moves (code of Yan et al.), and after how many updates
        self.reduction = "mean"  # of the squared errors of a batch, or their "sum"
        self.replay = Replay(50_000 + data, k)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = QNetwork(features.state_dim, features.action_dim, hidden)
        self.target = copy.deepcopy(self.network).requires_grad_(False)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=learning_rate, foreach=True)

    def update(self, batch: Batch, candidates: Candidates) -> float:
        """Make one gradient step, and return the loss."""
        q = forward(self.network, self.features, batch.state, batch.action[:, None])
        loss = self.loss(q, batch, candidates)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.clip:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.clip)
        self.optimiser.step()
        self.updates += 1
        rate, every = self.moves
        if self.updates % every == 0:
            with torch.no_grad():
                torch._foreach_lerp_(list(self.target.parameters()), list(self.network.parameters()), rate)
        return float(loss.detach())

    def loss(self, q: Tensor, batch: Batch, candidates: Candidates) -> Tensor:
        """Return half the squared Bellman error of each transition, shape (n,); ``q`` is Q(s, a)."""
        return 0.5 * nn.functional.mse_loss(q, self._target(batch, candidates), reduction=self.reduction)

    def _target(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return y = r + gamma max over a' in C(s') of Q_target(s', a'); r alone at a terminal s'."""
        y, alive = torch.from_numpy(batch.reward).float(), np.flatnonzero(batch.terminated == 0)
        if len(alive):
            following = candidates(batch.next_state[alive], batch.following[alive])
            with torch.no_grad():
                q = forward(self.target, self.features, batch.next_state[alive], following).numpy()
            starts = np.cumsum([0, *map(len, following[:-1])])
            y[alive] += self.gamma * torch.from_numpy(np.maximum.reduceat(q, starts))
        return y

    @torch.no_grad()
    def values(
        self, features: Features, states: Sequence[int], candidates: Sequence[IntArray]
    ) -> list[FloatArray]:
        """Return Q(s, a) of each state's candidates, in order; the states are numbered by ``features``."""
        if not states:
            return []
        q = forward(self.network, features, np.array(states), candidates).numpy().astype(np.float64)
        return np.split(q, np.cumsum([len(own) for own in candidates])[:-1])


def forward(
    network: nn.Module, features: Features, states: IntArray, candidates: Sequence[IntArray] | IntArray
) -> Tensor:
    """Return Q of numbered states with action indices, state by state, shape (total candidates,)."""
    rows = features.rows(states, candidates)  # first, because it may replace the matrix by a larger one
    owner = np.repeat(np.arange(len(states)), [len(own) for own in candidates])
    # The order of rows decides the last bits of a product. The order of appearance belongs to the run, while
    # the numbers of texts depend on what else the process has embedded.
    _, first, index = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    q: Tensor = network(
        torch.from_numpy(features.vectors[states]),
        torch.from_numpy(features.matrix[rows[first[order]]]),
        torch.from_numpy(owner),
        torch.from_numpy(rank[index]),
    )
    return q
