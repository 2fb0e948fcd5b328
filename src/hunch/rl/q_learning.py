"""Q-learning over candidate actions.

States and actions are vectors, Q(s, a) is a perceptron on both, and only the candidates C(s) of a state
count: all admissible actions, or those that a prior proposes. The squared Bellman error (Mnih et al., Nature
2015) and the conservative term (Kumar et al., NeurIPS 2020) each have a weight, so that online, offline and
behaviour-cloning agents share this code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hunch.core import FloatArray, IntArray
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share


@dataclass(frozen=True, kw_only=True)
class QConfig:
    """Q-learning on embedded texts."""

    gamma: Share = 0.9
    """Discount per step (released code: 0.99; the best of 0.9, 0.95 and 0.97 for DQN, see the log)."""
    bellman: NonNegativeFloat = 1.0
    """Weight of half the squared Bellman error."""
    beta: NonNegativeFloat = 0.0
    """Weight of the conservative term log sum exp Q(s, .) - Q(s, a) (paper: 5)."""
    floor: bool = False
    """Include the recorded action in the candidates of the conservative term, so that the term is never
    negative (our choice)."""
    reduction: Literal["mean", "sum"] = "mean"
    """Reduction over the squared errors of a batch (released code: sum, so its beta of 5 is 5/128 here)."""
    optimiser: Literal["adam", "adamw"] = "adam"
    """Adam, or Adam with decoupled weight decay (released code)."""
    learning_rate: PositiveFloat = 5e-4
    """Learning rate of the optimiser (paper's value)."""
    clip: NonNegativeFloat = 0.0
    """Maximum gradient norm; larger gradients are scaled down, 0 for no limit (released code: 1)."""
    batch_size: PositiveInt = 128
    """Transitions per update (paper)."""
    update_every: PositiveInt = 2
    """Environment steps per update, if updates are not made in rounds (our choice)."""
    round: NonNegativeInt = 0
    """Episodes per round, after which its updates are made; 0 for no rounds (released code: 10)."""
    round_updates: NonNegativeInt = 0
    """Updates per round; 0 for four passes over the replay buffer (released code)."""
    warmup: NonNegativeInt = 500
    """Environment steps before the first update (our choice)."""
    replay: PositiveInt = 50_000
    """Capacity of the replay buffer in transitions (our choice); recorded data are kept in addition."""
    target: Literal["soft", "hard"] = "soft"
    """Target network: soft moves a little with every update, hard is copied at intervals."""
    target_rate: Share = 0.005
    """soft: share by which the target moves per update (released code)."""
    target_every: PositiveInt = 500
    """hard: updates between copies (our choice)."""
    surplus: NonNegativeInt | None = None
    """Store a failed episode only while failures exceed successes by at most this number; none stores all
    (released code: 100)."""
    copies: PositiveInt = 1
    """Copies of a failed episode in the replay buffer (released code: 2 for DQN)."""
    hidden: PositiveInt = 128
    """Width of the three-layer perceptron (released code: 64)."""


class Features(Protocol):
    """Vectors of numbered states, with their admissible actions as rows of one matrix."""

    state_dim: int
    action_dim: int

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Vectors of the states, shape (states, state_dim)."""
        ...

    @property
    def matrix(self) -> NDArray[np.float32]:
        """Vectors of the actions, shape (texts, action_dim)."""
        ...

    def rows(self, states: Iterable[int], candidates: Iterable[IntArray]) -> IntArray:
        """Rows of each state's candidates in the matrix, one state after the other, shape (n,)."""
        ...


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
        """Return Q of pairs, shape (pairs,): rows ``owner`` of states with rows ``index`` of actions.

        States have shape (batch, state_dim), actions shape (texts, action_dim).
        """
        hidden = self.action_part(actions).index_select(0, index)
        if self.state_part is not None:
            hidden += self.state_part(states).index_select(0, owner)
        values: Tensor = self.head(self.middle(hidden.relu_()).relu_()).squeeze(-1)
        return values


class Batch(NamedTuple):
    """Transitions as columns of shape (n,): states and candidate sets by number, actions by index."""

    state: IntArray
    action: IntArray
    next_state: IntArray
    candidates: IntArray
    next_candidates: IntArray
    reward: FloatArray
    terminated: FloatArray


class Replay:
    """The last ``capacity`` transitions, sampled uniformly with replacement (Lin, 1992)."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.added = capacity, 0
        self.rows = np.zeros((1024, len(Batch._fields)))

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, *columns: float) -> None:
        """Add one transition, in the order of :class:`Batch`; the oldest is dropped when full."""
        row = self.added % self.capacity
        if row == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        self.rows[row] = columns
        self.added += 1

    def sample(self, n: int, rng: np.random.Generator) -> Batch:
        """Draw n transitions."""
        drawn = self.rows[rng.integers(len(self), size=n)].T
        return Batch(*drawn[:5].astype(np.int64), *drawn[5:])


class QLearner:
    """Q, its target network, its replay buffer, and the update.

    Args:
        features: Vectors of the numbered states.
        config: All settings.
        seed: Seed of the weights.
        data: Number of transitions kept in addition to ``config.replay``.
    """

    def __init__(self, features: Features, config: QConfig, seed: int, data: int = 0) -> None:
        self.features, self.config, self.updates = features, config, 0
        self.replay = Replay(config.replay + data)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = QNetwork(features.state_dim, features.action_dim, config.hidden)
        self.target = copy.deepcopy(self.network).requires_grad_(False)
        adam = torch.optim.AdamW if config.optimiser == "adamw" else torch.optim.Adam
        self.optimiser = adam(self.network.parameters(), lr=config.learning_rate, foreach=True)

    def update(self, batch: Batch, candidates: Callable[[IntArray, IntArray], list[IntArray]]) -> float:
        """Make one gradient step, and return the loss.

        Args:
            batch: Transitions.
            candidates: Returns C(s) as indices of a state's actions, given the numbers of states and sets.
        """
        c = self.config
        q = forward(self.network, self.features, batch.state, batch.action[:, None])
        loss = torch.zeros(())
        if c.bellman:  # y = r + gamma max over a' in C(s') of Q_target(s', a'); r alone at a terminal s'
            y, alive = torch.from_numpy(batch.reward).float(), np.flatnonzero(batch.terminated == 0)
            if len(alive):
                following = candidates(batch.next_state[alive], batch.next_candidates[alive])
                with torch.no_grad():
                    q_next = forward(self.target, self.features, batch.next_state[alive], following)
                starts = np.cumsum([0, *map(len, following[:-1])])
                y[alive] += c.gamma * torch.from_numpy(np.maximum.reduceat(q_next.numpy(), starts))
            loss = loss + c.bellman * 0.5 * nn.functional.mse_loss(q, y, reduction=c.reduction)
        if c.beta:
            own = candidates(batch.state, batch.candidates)
            if c.floor:
                own = [np.union1d(listed, action) for listed, action in zip(own, batch.action, strict=True)]
            others = self.padded(self.network, batch.state, own)
            loss = loss + c.beta * (torch.logsumexp(others, dim=1) - q).mean()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if c.clip:
            nn.utils.clip_grad_norm_(self.network.parameters(), c.clip)
        self.optimiser.step()
        self.updates += 1
        if c.target == "soft" or self.updates % c.target_every == 0:
            rate = c.target_rate if c.target == "soft" else 1.0
            with torch.no_grad():
                torch._foreach_lerp_(list(self.target.parameters()), list(self.network.parameters()), rate)
        return float(loss.detach())

    def padded(self, network: QNetwork, states: IntArray, candidates: Sequence[IntArray]) -> Tensor:
        """Return Q of each state's candidates, shape (n, max. candidates), padded with -inf."""
        lengths = torch.tensor([len(own) for own in candidates])
        there = torch.arange(int(lengths.max())) < lengths[:, None]
        q = forward(network, self.features, states, candidates)
        return torch.full(there.shape, -torch.inf).masked_scatter(there, q)

    def state_dict(self) -> dict[str, Any]:
        """Return weights, optimiser, replay buffer and counter."""
        filled = torch.from_numpy(self.replay.rows[: len(self.replay)])
        parts = {name: getattr(self, name).state_dict() for name in ("network", "target", "optimiser")}
        return {**parts, "replay": (self.replay.added, filled), "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        for name in ("network", "target", "optimiser"):
            getattr(self, name).load_state_dict(copy.deepcopy(state[name]))  # it would share the tensors
        self.replay.added, filled = state["replay"]
        self.replay.rows = np.zeros((max(1024, 2 * len(filled)), len(Batch._fields)))
        self.replay.rows[: len(filled)] = filled.numpy()
        self.updates = state["updates"]


@torch.no_grad()
def values(
    network: QNetwork, features: Features, states: Sequence[int], candidates: Sequence[IntArray]
) -> list[FloatArray]:
    """Return Q(s, a) of each state's candidates, in order."""
    if not states:
        return []
    q = forward(network, features, np.array(states), candidates).numpy().astype(np.float64)
    return np.split(q, np.cumsum([len(own) for own in candidates])[:-1])


def forward(
    network: nn.Module, features: Features, states: IntArray, candidates: Sequence[IntArray] | IntArray
) -> Tensor:
    """Return Q of numbered states with indices of their actions, one state after the other, shape (n,)."""
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
