"""Advantages for policy gradients: how much better a decision was than expected, computed from rewards.

The functions read rows: the tokens of all decisions, stream by stream, where a choice from a list
is one token. The reward of a decision belongs to its last token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hunch.core import FloatArray, IntArray
from hunch.rl.policy import Step
from hunch.rl.settings import GROUPED as GROUPED
from hunch.rl.settings import Kind

ROUNDING: Final = 1e-6
"""Relative difference of advantages below which they count as equal."""


class Rows(NamedTuple):
    """Tokens in the order in which they were drawn, one stream after the other.

    Attributes:
        rewards: Reward after each token, shape (m,).
        values: Value before each token, shape (m,).
        follows: Value after each token, shape (m,); 0 where no more reward can follow.
        ends: True where the episode's last row is, shape (m,).
        groups: Group of each episode, shape (episodes,); only for whole episodes.
        steps: Number of the step that each token belongs to, shape (m,); only for whole episodes.
        anchors: For each step a number of its state, shared by equal states of a group, shape (steps,).
    """

    rewards: FloatArray
    values: FloatArray
    follows: FloatArray
    ends: NDArray[np.bool_]
    groups: IntArray = np.zeros(0, dtype=np.int64)
    steps: IntArray = np.zeros(0, dtype=np.int64)
    anchors: IntArray = np.zeros(0, dtype=np.int64)


def gae(rows: Rows, gamma: float, decay: float) -> FloatArray:
    """Return generalised advantage estimates (Schulman et al., ICLR 2016), shape (m,).

    With a decay of 1 these are the bootstrapped returns minus the values, as in A2C (Mnih et al., ICML 2016).
    """
    advantages, later = np.zeros(len(rows.values)), 0.0
    for i in range(len(advantages) - 1, -1, -1):
        error = rows.rewards[i] + gamma * rows.follows[i] - rows.values[i]
        advantages[i] = later = error + (0.0 if rows.ends[i] else gamma * decay * later)
    return advantages


def returns(rows: Rows, gamma: float, decay: float) -> FloatArray:
    """Return discounted returns of whole episodes, without baseline (Williams, 1992), shape (m,)."""
    found, later = np.zeros(len(rows.rewards)), 0.0
    for i in range(len(found) - 1, -1, -1):
        found[i] = later = rows.rewards[i] + (0.0 if rows.ends[i] else gamma * later)
    return found


def group(rows: Rows, gamma: float, decay: float) -> FloatArray:
    """Return episode returns, standardised within each group (GRPO, Shao et al., 2024), shape (m,).

    All tokens of an episode have the same advantage, from its undiscounted return. It is 0 in groups with
    equal returns, where the division by a rounding error would be meaningless.
    """
    return _spread(_compared(_scores(rows), rows.groups), rows)


def anchored(rows: Rows, gamma: float, decay: float, weight: float) -> FloatArray:
    """Return :func:`group` plus the same over equal states (GiGPO, Feng et al., NeurIPS 2025), shape (m,).

    The second term compares the discounted returns after those steps of a group's episodes that were taken in
    the same state, so steps of one episode differ. For a state that occurs once the term is 0.
    """
    firsts = np.flatnonzero(np.diff(rows.steps, prepend=-1))
    paid, ends = np.add.reduceat(rows.rewards, firsts), np.logical_or.reduceat(rows.ends, firsts)
    later = returns(Rows(paid, paid, paid, ends), gamma, decay)
    return group(rows, gamma, decay) + weight * _compared(later, rows.anchors)[rows.steps]


def leave_one_out(rows: Rows, gamma: float, decay: float) -> FloatArray:
    """Return returns minus the mean of the group's others (RLOO, Ahmadian et al., ACL 2024), shape (m,)."""
    scores = _scores(rows)
    gained = np.zeros(len(scores))
    for number in np.unique(rows.groups):
        own = scores[rows.groups == number]
        gained[rows.groups == number] = (own - own.mean()) * len(own) / (len(own) - 1)
    return _spread(gained, rows)


def self_critical(rows: Rows, gamma: float, decay: float) -> FloatArray:
    """Return returns minus that of the group's first, greedy episode (Rennie et al., CVPR 2017), shape (m,).

    The first episode has advantage 0.
    """
    scores = _scores(rows)
    _, firsts, own = np.unique(rows.groups, return_index=True, return_inverse=True)
    return _spread(scores - scores[firsts][own], rows)


Advantage: TypeAlias = "Callable[[Rows, float, float], FloatArray]"
"""Function that returns the advantage of each token, given the discount per token and the decay (lambda)."""
ADVANTAGES: Final[Mapping[Kind, Advantage]] = MappingProxyType(
    {
        **{"gae": gae, "returns": returns, "group": group},
        **{"leave_one_out": leave_one_out, "self_critical": self_critical},
    }
)
"""The advantage functions by name."""


def anchors(
    streams: Sequence[Sequence[Step]], groups: Sequence[int], mask: Tensor
) -> tuple[IntArray, IntArray]:
    """Return the step of each token, and for each step a number of its state within the group.

    Args:
        streams: The steps of each episode.
        groups: The group of each episode.
        mask: True for the tokens of each step, shape (steps, T).
    """
    met: dict[tuple[Any, ...], int] = {}
    pairs = [(own, t.state) for own, stream in zip(groups, streams, strict=True) for t, _ in stream]
    found = [met.setdefault((own, s.observation, s.actions), len(met)) for own, s in pairs]
    return np.repeat(np.arange(len(pairs)), mask.sum(1).cpu().numpy()), np.array(found)


def standardised(advantages: Tensor) -> Tensor:
    """Return advantages with mean 0 and variance 1; zeros if they are equal up to rounding.

    Equal advantages differ from their mean only by a rounding error. Dividing that error by an
    equally small deviation would raise or lower the probability of every action of the batch.
    """
    spread = advantages.std(correction=0)
    if spread <= ROUNDING * advantages.abs().max():
        return torch.zeros_like(advantages)
    return (advantages - advantages.mean()) / (spread + 1e-8)


def _compared(scores: FloatArray, owners: IntArray) -> FloatArray:
    """Return scores standardised among those of the same owner; 0 where they are equal, or alone."""
    gained = np.zeros(len(scores))
    order = np.argsort(owners, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(owners[order])) + 1):
        own = scores[rows]
        spread = own.std(ddof=1) if len(own) > 1 else 0.0
        if spread > ROUNDING * np.abs(own).max():
            gained[rows] = (own - own.mean()) / spread
    return gained


def _scores(rows: Rows) -> FloatArray:
    """Return the undiscounted return of each episode."""
    found: FloatArray = np.add.reduceat(rows.rewards, _starts(rows))
    return found


def _spread(gained: FloatArray, rows: Rows) -> FloatArray:
    """Return the advantage of each episode at each of its rows."""
    return np.repeat(gained, np.diff(_starts(rows), append=len(rows.rewards)))


def _starts(rows: Rows) -> IntArray:
    return np.append(0, np.flatnonzero(rows.ends)[:-1] + 1)
