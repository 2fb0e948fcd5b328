"""The policy role without a model: perceptrons on embeddings, the baseline of every trained policy.

This module imports torch, so import it only where a policy is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hunch.core import IntArray, Saved, State
from hunch.rl.listed import ListedPolicy
from hunch.rl.q_learning import forward
from hunch.roles.encoder.features import StateFeatures, TextTable, Vectors

KNOWN = 10_000
"""Maximum number of states whose features are cached."""


class PerceptronPolicy(ListedPolicy, Saved):
    """Two perceptrons on frozen embeddings: one scores the actions of a state, one evaluates states.

    The score of an action is the inner product of the first perceptron's output with a linear map of the
    action's embedding (He et al., "Deep Reinforcement Learning with a Natural Language Action Space", ACL
    2016). If all states have the same actions this is CleanRL's network: two tanh layers, orthogonal weights,
    and one output per action. Embeddings of states differ little, because most of their text is the same, so
    they are standardised by the mean and standard deviation of the states passed to :meth:`update_moments`.

    Args:
        table: Embeds texts.
        hidden: Width of both perceptrons.
        seed: Seed of the weights.
    """

    saved = ("actor", "critic", "spread")

    def __init__(self, table: TextTable, hidden: int, seed: int) -> None:
        self.features = StateFeatures(table)
        self.spread = RunningMoments(self.features.state_dim)  # the name in the checkpoints of all versions
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            dim = self.features.state_dim
            self.actor = Scorer(dim, self.features.action_dim, hidden)
            self.critic = nn.Sequential(*perceptron(dim, hidden), orthogonal(hidden, 1, 1))

    def logprobs(self, states: Sequence[State]) -> Tensor:
        """Return the log-probabilities of the actions, shape (n, max. actions), padded with -inf."""
        all_actions = [np.arange(len(state.options)) for state in states]
        features, rows = self._features_of(states)
        scores = forward(self.actor, features, rows, all_actions)  # (all actions of all states,)
        by_state = torch.split(scores, [len(actions) for actions in all_actions])
        padded = nn.utils.rnn.pad_sequence(list(by_state), True, padding_value=-torch.inf)
        return padded.log_softmax(1)

    def state_values(self, states: Sequence[State]) -> Tensor:
        """Return the values with gradients, shape (n,)."""
        features, rows = self._features_of(states)
        values: Tensor = self.critic(torch.from_numpy(features.vectors[rows]))[:, 0]
        return values

    def update_moments(self, states: Sequence[State]) -> None:
        """Add states to mean and standard deviation. This changes the policy, so call it between updates."""
        numbers = self.features.number(states)  # first, because it may replace the matrix by a larger one
        self.spread.add(self.features.vectors[numbers])

    def _features_of(self, states: Sequence[State]) -> tuple[StandardisedFeatures, IntArray]:
        """Return the features of the distinct states, and the row of each state."""
        if len(self.features.states) > KNOWN:
            self.features = StateFeatures(self.features.table)
        features = self.features
        numbers, rows = np.unique(features.number(states), return_inverse=True)
        actions = [features.actions[number] for number in numbers]
        vectors = self.spread(features.vectors[numbers])  # (distinct states, state_dim)
        return StandardisedFeatures(
            features.state_dim, features.action_dim, actions, vectors, features.matrix
        ), rows

    def parameters(self) -> dict[str, list[nn.Parameter]]:
        """Return the trained weights of both perceptrons."""
        return {"policy": list(self.actor.parameters()), "value": list(self.critic.parameters())}


@dataclass
class StandardisedFeatures:
    """Features of some states, whose vectors are standardised; see :class:`hunch.rl.q_learning.Features`."""

    state_dim: int
    action_dim: int
    actions: list[IntArray]
    vectors: Vectors
    matrix: Vectors

    def rows(self, states: Iterable[int], candidates: Iterable[IntArray]) -> IntArray:
        """Return the rows of each state's candidates in the matrix, shape (total candidates,)."""
        rows = [self.actions[state][places] for state, places in zip(states, candidates, strict=True)]
        return np.concatenate(rows)


class Scorer(nn.Module):
    """Inner products of states and actions, each mapped by a separate network."""

    def __init__(self, state_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        # The names are in the checkpoints of all versions: what a state wants, and what an action offers.
        self.wants = nn.Sequential(*perceptron(state_dim, hidden))
        self.offers = orthogonal(action_dim, hidden, 0.01)  # nearly uniform at first

    def forward(self, states: Tensor, actions: Tensor, owner: Tensor, index: Tensor) -> Tensor:
        """Return the scores of pairs, shape (pairs,), as :class:`hunch.rl.q_learning.QNetwork` does."""
        wanted = self.wants(states)[owner]  # (pairs, hidden)
        offered = self.offers(actions)[index]  # (pairs, hidden)
        scores: Tensor = (wanted * offered).sum(dim=1)
        return scores


def perceptron(dim: int, hidden: int) -> list[nn.Module]:
    """Return the hidden part of a perceptron: two linear layers with tanh (CleanRL)."""
    return [orthogonal(dim, hidden, 2**0.5), nn.Tanh(), orthogonal(hidden, hidden, 2**0.5), nn.Tanh()]


def orthogonal(dim: int, out: int, gain: float) -> nn.Linear:
    """Return a layer with orthogonal weights (CleanRL)."""
    layer = nn.Linear(dim, out)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class RunningMoments:
    """Running mean and standard deviation of vectors (Chan et al., 1979).

    Args:
        dim: Length of a vector.
    """

    def __init__(self, dim: int) -> None:
        self.count = 0
        self.mean = np.zeros(dim)
        self.squares = np.zeros(dim)  # sum of squared differences from the mean

    def add(self, rows: Vectors) -> None:
        """Add vectors, shape (n, dim)."""
        total = self.count + len(rows)
        mean = rows.mean(axis=0, dtype=np.float64)  # (dim,)
        difference = mean - self.mean
        squares = ((rows - mean) ** 2).sum(axis=0)  # within the new vectors
        self.squares = self.squares + squares + difference**2 * self.count * len(rows) / total
        self.mean = self.mean + difference * len(rows) / total
        self.count = total

    def __call__(self, rows: Vectors) -> Vectors:
        """Return standardised vectors, clipped to +-10; unchanged before the first :meth:`add`."""
        if not self.count:
            return rows
        scale = np.sqrt(self.squares / self.count + 1e-8)
        return np.clip((rows - self.mean) / scale, -10, 10).astype(np.float32)

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics."""
        return {
            "count": self.count,
            "mean": torch.from_numpy(self.mean),
            "squares": torch.from_numpy(self.squares),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.count = state["count"]
        self.mean = state["mean"].numpy()
        self.squares = state["squares"].numpy()
