"""Q-learning over candidate actions.

States and actions are vectors, Q(s, a) is a perceptron on both, and only the candidates C(s) of a state
count: all admissible actions, or those that a prior proposes. One update on a batch of n transitions (Mnih et
al., "Human-level control through deep reinforcement learning", Nature 2015)::

    y         <- r + gamma max over a' in C(s') of Q_target(s', a')         r alone if s' is terminal
    L         <- 1/2 mean (Q(s, a) - y)^2
    Q         <- Q - Adam(gradient of L)
    Q_target  <- (1 - target_rate) Q_target + target_rate Q                 after every target_every updates

:mod:`hunch.rl.conservative` adds a term to L.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hunch.core import FloatArray, HunchError, IntArray, Saved

_INFINITE: Final = (
    "Q is not finite any more. If all rewards and the encoder's vectors are finite, the learning rate is too "
    "high for rewards of this size: lower learning_rate, set max_norm, or scale the rewards."
)


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
    """The n transitions of an update, by columns.

    Attributes:
        state: Number of the state s, shape (n,).
        action: Index of the action a among the actions of s, shape (n,).
        next_state: Number of the next state s', shape (n,).
        reward: Reward r, shape (n,).
        terminated: 1 if s' is terminal, else 0, shape (n,).
        candidates: C(s) as indices of the actions of s, shape (n, k), padded with -1; k is 0 if the sets are
            stored elsewhere.
        next_candidates: C(s') in the same way.
    """

    state: IntArray
    action: IntArray
    next_state: IntArray
    reward: FloatArray
    terminated: FloatArray
    candidates: IntArray
    next_candidates: IntArray


Row: TypeAlias = tuple[int, int, int, float, bool, Sequence[int], Sequence[int]]
"""A transition in the order of :class:`Batch`; candidate sets may be empty if they are stored elsewhere."""


class Replay:
    """The last ``capacity`` transitions, sampled uniformly with replacement (Lin, 1992).

    Args:
        capacity: Maximum number of transitions; the oldest is dropped when full.
        k: Maximum number of candidates stored with a state.
    """

    def __init__(self, capacity: int, k: int = 0) -> None:
        self.capacity = capacity
        self.k = k
        self.added = 0
        self.rows = np.zeros((1024, 5 + 2 * k))  # s, a, s', r, terminated, C(s), C(s'); grows when full

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, row: Row) -> None:
        """Add one transition."""
        place = self.added % self.capacity
        if place == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        *columns, candidates, next_candidates = row
        sets = np.full((2, self.k), -1)
        sets[0, : len(candidates)] = candidates
        sets[1, : len(next_candidates)] = next_candidates
        self.rows[place] = [*columns, *sets.flat]
        self.added += 1

    def states(self) -> list[int]:
        """Return the numbers of all states s and s' of the transitions, each once."""
        numbers: list[int] = np.unique(self.rows[: len(self), [0, 2]]).astype(np.int64).tolist()
        return numbers

    def sample(self, n: int, rng: np.random.Generator) -> Batch:
        """Draw n transitions."""
        rows = self.rows[rng.integers(len(self), size=n)]  # (n, 5 + 2 k)
        state, action, next_state = rows[:, :3].T.astype(np.int64)
        reward, terminated = rows[:, 3], rows[:, 4]
        candidates, next_candidates = np.split(rows[:, 5:].astype(np.int64), 2, axis=1)
        return Batch(state, action, next_state, reward, terminated, candidates, next_candidates)

    def state_dict(self) -> tuple[int, Tensor]:
        """Return the number of transitions added so far, and the rows."""
        return self.added, torch.from_numpy(self.rows[: len(self)])

    def load_state_dict(self, state: tuple[int, Tensor]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.added, filled = state
        self.k = (filled.shape[1] - 5) // 2
        self.rows = np.zeros((max(1024, 2 * len(filled)), filled.shape[1]))
        self.rows[: len(filled)] = filled.numpy()


CandidateSets: TypeAlias = Callable[[IntArray, IntArray], list[IntArray]]
"""Function that returns C(s) of n states, each an array of action indices.

Its arguments are the numbers of the states, shape (n,), and the sets that are stored with their transitions,
shape (n, k)."""


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
        max_norm: Maximum gradient norm; 0 for no limit.

    Attributes:
        target_rate: Share by which the target network moves towards Q (code of Yan et al.); 1 copies Q.
        target_every: Number of updates after which it moves.
        reduction: What the loss does with the squared errors of a batch: their ``mean``, or their ``sum``.
        updates: Number of updates so far.
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
        max_norm: float = 0.0,
    ) -> None:
        self.features = features
        self.gamma = gamma
        self.max_norm = max_norm
        self.target_rate = 0.005
        self.target_every = 1
        self.reduction = "mean"
        self.updates = 0
        self.replay = Replay(50_000 + data, k)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = QNetwork(features.state_dim, features.action_dim, hidden)
        self.target = copy.deepcopy(self.network).requires_grad_(False)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=learning_rate, foreach=True)

    def update(self, batch: Batch, candidates: CandidateSets) -> float:
        """Make one gradient step, and return the loss.

        Args:
            batch: n transitions.
            candidates: Returns the sets C(s) and C(s') of the batch.

        Raises:
            HunchError: if the loss is not finite; Q is then left unchanged.
        """
        # 1. The loss of Q(s, a).
        q = forward(self.network, self.features, batch.state, batch.action[:, None])  # (n,)
        loss = self.loss(q, batch, candidates)
        if not torch.isfinite(loss):
            raise HunchError(_INFINITE)

        # 2. Q <- Q - Adam(gradient of the loss).
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.max_norm:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.max_norm)
        self.optimiser.step()
        self.updates += 1

        # 3. Q_target <- (1 - target_rate) Q_target + target_rate Q.
        if self.updates % self.target_every == 0:
            target_weights = tuple(self.target.parameters())
            weights = tuple(self.network.parameters())
            with torch.no_grad():
                torch._foreach_lerp_(target_weights, weights, self.target_rate)
        return float(loss.detach())

    def loss(self, q: Tensor, batch: Batch, candidates: CandidateSets) -> Tensor:
        """Return the loss, 1/2 mean (Q(s, a) - y)^2, as a scalar; the sum with ``reduction="sum"``.

        Args:
            q: Q(s, a) with gradients, shape (n,).
            batch: The n transitions.
            candidates: Returns their candidate sets.
        """
        y = self._bellman_target(batch, candidates)
        return 0.5 * nn.functional.mse_loss(q, y, reduction=self.reduction)

    @torch.no_grad()
    def _bellman_target(self, batch: Batch, candidates: CandidateSets) -> Tensor:
        """Return y = r + gamma max over a' in C(s') of Q_target(s', a'), r at a terminal s'; shape (n,)."""
        y = torch.from_numpy(batch.reward).float()
        alive = np.flatnonzero(batch.terminated == 0)  # (m,): the transitions with a future
        if not len(alive):
            return y
        next_states = batch.next_state[alive]
        next_candidates = candidates(next_states, batch.next_candidates[alive])
        # All pairs in one pass, the candidates of a state side by side; then the maximum over each state's.
        q = forward(self.target, self.features, next_states, next_candidates).numpy()
        first = np.cumsum([0, *map(len, next_candidates[:-1])])  # (m,)
        y[alive] += self.gamma * torch.from_numpy(np.maximum.reduceat(q, first))
        return y

    @torch.no_grad()
    def values(
        self, features: Features, states: Sequence[int], candidates: Sequence[IntArray]
    ) -> list[FloatArray]:
        """Return Q(s, a) of each state's candidates, in order; the states are numbered by ``features``.

        Raises:
            HunchError: if one is not finite.
        """
        if not states:
            return []
        q = forward(self.network, features, np.array(states), candidates).numpy().astype(np.float64)
        if not np.isfinite(q).all():
            raise HunchError(_INFINITE)
        ends = np.cumsum([len(indices) for indices in candidates])
        return np.split(q, ends[:-1])


def forward(
    network: nn.Module, features: Features, states: IntArray, candidates: Sequence[IntArray] | IntArray
) -> Tensor:
    """Return a network's output for each state with each of its candidates, shape (total candidates,).

    Args:
        network: Called as :class:`QNetwork` is.
        features: Vectors of the numbered states and their actions.
        states: Numbers of the states, shape (n,).
        candidates: Indices of actions, an array for each state; the output has the same order.
    """
    rows = features.rows(states, candidates)  # first, because it may replace the matrix by a larger one
    owner = np.repeat(np.arange(len(states)), [len(indices) for indices in candidates])
    # Each distinct action once. The order of rows decides the last bits of a product. The order of appearance
    # belongs to the run, while the numbers of texts depend on what else the process has embedded.
    _, first, index = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    outputs: Tensor = network(
        torch.from_numpy(features.vectors[states]),
        torch.from_numpy(features.matrix[rows[first[order]]]),
        torch.from_numpy(owner),
        torch.from_numpy(rank[index]),
    )
    return outputs
