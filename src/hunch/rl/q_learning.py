"""Q-learning over candidate actions, with the whole update on one screen.

States and actions are vectors, Q(s, a) is a perceptron on both, and only the candidates C(s) of a state
count: all admissible actions, or those that a prior proposes. The squared Bellman error (Mnih et al., Nature
2015) and the conservative term (Kumar et al., NeurIPS 2020) have a weight each, so that online, offline and
cloned agents share every line.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
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
    """Discount per step (released code: 0.99; of 0.9, 0.95 and 0.97 the best for DQN, see the log)."""
    bellman: NonNegativeFloat = 1.0
    """Weight of the squared Bellman error, halved."""
    beta: NonNegativeFloat = 0.0
    """Weight of the conservative term log sum exp Q(s, .) - Q(s, a) (paper: 5)."""
    floor: bool = False
    """Count the recorded action among the candidates of the conservative term, which then is never negative
    (ours)."""
    reduction: Literal["mean", "sum"] = "mean"
    """Over the squared errors of a batch (released code: sum, so that its beta of 5 is 5/128 of ours)."""
    optimiser: Literal["adam", "adamw"] = "adam"
    """Adam, or with decoupled weight decay (released code)."""
    learning_rate: PositiveFloat = 5e-4
    """Of the optimiser (paper)."""
    clip: NonNegativeFloat = 0.0
    """Largest norm of a gradient, beyond which it is scaled down; 0 for none (released code: 1)."""
    batch_size: PositiveInt = 128
    """Transitions per update (paper)."""
    update_every: PositiveInt = 2
    """Environment steps per update, where updates are not done in rounds (ours)."""
    round: NonNegativeInt = 0
    """Episodes of a round, after which its updates are due at once; 0 for no rounds (released code: 10)."""
    round_updates: NonNegativeInt = 0
    """Updates of a round; 0 for four passes over the replay buffer (released code)."""
    warmup: NonNegativeInt = 500
    """Environment steps before the first update (ours)."""
    replay: PositiveInt = 50_000
    """Transitions of its own that an agent keeps (ours); recorded data are kept besides."""
    target: Literal["soft", "hard"] = "soft"
    """Target network: moves a little with every update, or is copied now and then."""
    target_rate: Share = 0.005
    """soft: how far the target moves per update (released code)."""
    target_every: PositiveInt = 500
    """hard: updates between two copies (ours)."""
    surplus: NonNegativeInt | None = None
    """A failed episode is only stored while failures exceed successes by no more; none stores all (released
    code: 100)."""
    copies: PositiveInt = 1
    """Copies of a failed episode in the replay buffer (released code: 2 for DQN)."""
    hidden: PositiveInt = 128
    """Width of the three-layer perceptron (released code: 64)."""


class Features(Protocol):
    """States by number, as vectors, with their admissible actions as rows of one matrix."""

    state_dim: int
    action_dim: int
    rows: list[IntArray]

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Vectors of the states, shape (states, state_dim)."""
        ...

    @property
    def matrix(self) -> NDArray[np.float32]:
        """Vectors of the actions, shape (texts, action_dim)."""
        ...


class QNetwork(nn.Module):
    """A three-layer perceptron on the concatenation of a state's and an action's vector.

    The first layer of a concatenation is the sum of two linear maps, so that a state's part is computed once
    and so is a distinct action's, however many pairs they form.
    """

    def __init__(self, state_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.state_part = nn.Linear(state_dim, hidden) if state_dim else None
        self.action_part = nn.Linear(action_dim, hidden, bias=not state_dim)
        self.middle = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, states: Tensor, actions: Tensor, owner: Tensor, index: Tensor) -> Tensor:
        """Return Q of pairs, shape (pairs,): rows ``owner`` of states with rows ``index`` of actions.

        The states are of shape (batch, state_dim), the actions of shape (texts, action_dim).
        """
        hidden = self.action_part(actions)[index]
        if self.state_part is not None:
            hidden = hidden + self.state_part(states)[owner]
        values: Tensor = self.head(torch.relu(self.middle(torch.relu(hidden)))).squeeze(-1)
        return values


class Batch(NamedTuple):
    """Transitions as columns of shape (n,): states and candidate sets by number, actions by position."""

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
        """Add one transition, in the order of :class:`Batch`, forgetting the oldest when full."""
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
        features: What the numbers of states stand for.
        config: All settings.
        seed: Of the weights.
        data: Transitions that are kept besides those of ``config.replay``.
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
        """Take one step down the loss.

        Args:
            batch: Transitions.
            candidates: Gives C(s), as positions among a state's actions, of the numbers of states and sets.
        """
        c = self.config
        q = forward(self.network, self.features, batch.state, batch.action[:, None])
        loss = torch.zeros(())
        if c.bellman:  # y = r + gamma max over a' in C(s') of Q_target(s', a'); r alone at a terminal s'
            y, alive = torch.from_numpy(batch.reward).float(), np.flatnonzero(batch.terminated == 0)
            if len(alive):
                following = candidates(batch.next_state[alive], batch.next_candidates[alive])
                with torch.no_grad():
                    best = self.padded(self.target, batch.next_state[alive], following).max(dim=1).values
                y[alive] += c.gamma * best
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
        """Q of each state's candidates, shape (n, most candidates), padded with -inf."""
        lengths = torch.tensor([len(own) for own in candidates])
        there = torch.arange(int(lengths.max())) < lengths[:, None]
        q = forward(network, self.features, states, candidates)
        return torch.full(there.shape, -torch.inf).masked_scatter(there, q)

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser, replay buffer and counter."""
        filled = torch.from_numpy(self.replay.rows[: len(self.replay)])
        parts = {name: getattr(self, name).state_dict() for name in ("network", "target", "optimiser")}
        return {**parts, "replay": (self.replay.added, filled), "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` gave."""
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
    """Q(s, a) of each state's candidates, in their order."""
    if not states:
        return []
    q = forward(network, features, np.array(states), candidates).numpy().astype(np.float64)
    return np.split(q, np.cumsum([len(own) for own in candidates])[:-1])


def forward(
    network: nn.Module, features: Features, states: IntArray, candidates: Sequence[IntArray] | IntArray
) -> Tensor:
    """Q of numbered states, shape (n,), with positions among their actions, one state after the other."""
    rows = np.concatenate([features.rows[i][own] for i, own in zip(states, candidates, strict=True)])
    owner = np.repeat(np.arange(len(states)), [len(own) for own in candidates])
    # The order of rows decides the last bits of a product: the order of appearance is the run's own, while
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
