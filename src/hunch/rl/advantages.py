"""Advantages for policy gradients: how much better an action was than expected, computed from rewards.

The functions read all m actions of an update one after the other, stream by stream, and return one advantage
for each. An action is a token, a whole text or a choice from a list, as the update counts them. The reward of
a step belongs to its last action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hunch.core import FloatArray, IntArray
from hunch.rl.policy import Step
from hunch.rl.settings import GROUPED as GROUPED
from hunch.rl.settings import Kind

ROUNDING: Final = 1e-6
"""Relative difference of returns or advantages below which they count as equal. Where returns are divided by
their deviation, that of returns near 0 is relative to 1: with the KL divergence in the reward, returns of 0
differ by the rounding errors of log-probabilities."""


class Actions(NamedTuple):
    """The m actions of an update in the order in which they were drawn, one stream after the other.

    Attributes:
        rewards: Reward after each action, shape (m,).
        values: Value before each action, shape (m,).
        next_values: Value after each action, shape (m,); 0 where no more reward can follow.
        ends: True for the last action of an episode, or of a stream, shape (m,).
        groups: Group of each episode, shape (episodes,); only for whole episodes.
        steps: Number of the step that each action belongs to, shape (m,); only for whole episodes.
        anchors: For each step a number of its state, shared by equal states of a group, shape (steps,).
    """

    rewards: FloatArray
    values: FloatArray
    next_values: FloatArray
    ends: NDArray[np.bool_]
    groups: IntArray = np.zeros(0, dtype=np.int64)
    steps: IntArray = np.zeros(0, dtype=np.int64)
    anchors: IntArray = np.zeros(0, dtype=np.int64)


# ---- from single steps -----------------------------------------------------------------------------------


def gae(actions: Actions, gamma: float, lam: float) -> FloatArray:
    """Return generalised advantage estimates (Schulman et al., ICLR 2016), shape (m,)::

        delta_t = r_t + gamma V(s_t+1) - V(s_t)
        A_t     = delta_t + gamma lam A_t+1          without the second term at an end

    With ``lam=1`` these are the bootstrapped returns minus the values, as in A2C (Mnih et al., ICML 2016).
    """
    deltas = actions.rewards + gamma * actions.next_values - actions.values
    advantages = np.zeros(len(deltas))
    next_advantage = 0.0
    for t in reversed(range(len(deltas))):
        if actions.ends[t]:
            next_advantage = 0.0
        advantages[t] = deltas[t] + gamma * lam * next_advantage
        next_advantage = advantages[t]
    return advantages


def returns(actions: Actions, gamma: float, lam: float) -> FloatArray:
    """Return discounted returns of whole episodes, without baseline (Williams, 1992), shape (m,)::

        R_t = r_t + gamma R_t+1          without the second term at an end

    ``lam`` has no meaning here.
    """
    discounted = np.zeros(len(actions.rewards))
    next_return = 0.0
    for t in reversed(range(len(discounted))):
        if actions.ends[t]:
            next_return = 0.0
        discounted[t] = actions.rewards[t] + gamma * next_return
        next_return = discounted[t]
    return discounted


# ---- from the episodes of a group: all actions of an episode have the same advantage ----------------------


def group(actions: Actions, gamma: float, lam: float) -> FloatArray:
    """Return episode returns, standardised within each group (GRPO, Shao et al., 2024), shape (m,)::

        A = (R - mean of the group) / standard deviation of the group,    R = sum of r over the episode

    It is 0 in groups with equal returns, where the division by a rounding error would be meaningless. The
    return is not discounted, so ``gamma`` and ``lam`` have no meaning here.
    """
    return _for_each_action(_standardised_in_groups(_episode_returns(actions), actions.groups), actions)


def anchored(
    actions: Actions, gamma: float, lam: float, weight: float, *, over_steps: bool = False
) -> FloatArray:
    """Return :func:`group` plus the same over equal states (GiGPO, Feng et al., NeurIPS 2025), shape (m,)::

        A = (R - mean) / standard deviation + weight (R_t - mean) / standard deviation
            over the group                                   over the steps in the same state

    R_t is the discounted return after a step. The second term compares the steps of a group's episodes that
    were taken in the same state, so steps of one episode differ. It is 0 for a state that occurs once.

    Args:
        actions: The actions of whole episodes.
        gamma: Discount per step.
        lam: Without a meaning here.
        weight: Weight of the second term.
        over_steps: The mean and the deviation of the first term count an episode once for each of its steps,
            as in the released code; otherwise once, as in the paper.
    """
    # The actions of a step as one, which has the step's reward.
    first_of_step = np.flatnonzero(np.diff(actions.steps, prepend=-1))  # (steps,)
    rewards = np.add.reduceat(actions.rewards, first_of_step)  # (steps,)
    ends = np.logical_or.reduceat(actions.ends, first_of_step)  # (steps,)
    unused = rewards  # returns reads no values
    step_returns = returns(Actions(rewards, unused, unused, ends), gamma, lam)  # (steps,)

    step_advantages = _standardised_in_groups(step_returns, actions.anchors)  # (steps,)
    if not over_steps:
        return group(actions, gamma, lam) + weight * step_advantages[actions.steps]

    # The return and the group of its episode for each step.
    episode_of_step = np.append(0, np.cumsum(ends)[:-1])  # (steps,)
    episode_returns = _episode_returns(actions)[episode_of_step]  # (steps,)
    groups = actions.groups[episode_of_step]  # (steps,)
    episode_advantages = _standardised_in_groups(episode_returns, groups)  # (steps,)
    return (episode_advantages + weight * step_advantages)[actions.steps]


def leave_one_out(actions: Actions, gamma: float, lam: float) -> FloatArray:
    """Return returns minus the mean of the group's others (RLOO, Ahmadian et al., ACL 2024), shape (m,)::

        A_i = R_i - 1/(k-1) sum over j != i of R_j  =  (R_i - mean of the k) k / (k-1)

    It is 0 in groups with equal returns, where the mean may differ from them by a rounding error. The return
    is not discounted, so ``gamma`` and ``lam`` have no meaning here.
    """
    episode_returns = _episode_returns(actions)
    advantages = np.zeros(len(episode_returns))
    for number in np.unique(actions.groups):
        members = actions.groups == number  # (episodes,)
        group_returns = episode_returns[members]  # (k,)
        if np.ptp(group_returns) <= ROUNDING * np.abs(group_returns).max():
            continue
        k = len(group_returns)
        advantages[members] = (group_returns - group_returns.mean()) * k / (k - 1)
    return _for_each_action(advantages, actions)


def self_critical(actions: Actions, gamma: float, lam: float) -> FloatArray:
    """Return returns minus that of the group's first, greedy episode (Rennie et al., CVPR 2017), shape (m,).

    The first episode has advantage 0, and so has one with an equal return, whatever the rounding of its sum.
    The return is not discounted, so ``gamma`` and ``lam`` have no meaning here.
    """
    episode_returns = _episode_returns(actions)
    _, first_of_group, group_of_episode = np.unique(actions.groups, return_index=True, return_inverse=True)
    baseline = episode_returns[first_of_group][group_of_episode]  # (episodes,)
    advantages = episode_returns - baseline
    advantages[np.abs(advantages) <= ROUNDING * np.abs(baseline)] = 0
    return _for_each_action(advantages, actions)


Advantage: TypeAlias = "Callable[[Actions, float, float], FloatArray]"
"""Function that returns the advantage of each action, given the discount per action and lambda."""
ADVANTAGES: Final[Mapping[Kind, Advantage]] = MappingProxyType(
    {
        "gae": gae,
        "returns": returns,
        "group": group,
        "leave_one_out": leave_one_out,
        "self_critical": self_critical,
    }
)
"""The advantage functions by name."""


def _episode_returns(actions: Actions) -> FloatArray:
    """Return the undiscounted return of each episode, shape (episodes,)."""
    sums: FloatArray = np.add.reduceat(actions.rewards, _first_actions(actions))
    return sums


def _for_each_action(advantages: FloatArray, actions: Actions) -> FloatArray:
    """Return the advantage of its episode for each action, (episodes,) -> (m,)."""
    lengths = np.diff(_first_actions(actions), append=len(actions.rewards))
    return np.repeat(advantages, lengths)


def _first_actions(actions: Actions) -> IntArray:
    """Return the place of each episode's first action, shape (episodes,)."""
    return np.append(0, np.flatnonzero(actions.ends)[:-1] + 1)


def _standardised_in_groups(scores: FloatArray, groups: IntArray) -> FloatArray:
    """Return scores standardised among those of the same group; 0 where they are equal, or alone.

    Args:
        scores: Shape (k,).
        groups: The number of each score's group, shape (k,).
    """
    scaled = np.zeros(len(scores))
    order = np.argsort(groups, kind="stable")  # the members of a group side by side
    borders = np.flatnonzero(np.diff(groups[order])) + 1
    for members in np.split(order, borders):
        if len(members) < 2:
            continue
        group_scores = scores[members]
        deviation = group_scores.std(ddof=1)
        if deviation > ROUNDING * max(1.0, np.abs(group_scores).max()):
            scaled[members] = (group_scores - group_scores.mean()) / deviation
    return scaled


def standardised(advantages: Tensor) -> Tensor:
    """Return advantages with mean 0 and variance 1; zeros if they are equal up to rounding.

    Equal advantages differ from their mean only by a rounding error. Dividing that error by an
    equally small deviation would raise or lower the probability of every action of the batch.
    """
    deviation = advantages.std(correction=0)
    if deviation <= ROUNDING * advantages.abs().max():
        return torch.zeros_like(advantages)
    return (advantages - advantages.mean()) / (deviation + 1e-8)


def anchors(
    streams: Sequence[Sequence[Step]], groups: Sequence[int], mask: Tensor
) -> tuple[IntArray, IntArray]:
    """Return the step of each action, and for each step a number of its state within the group.

    Args:
        streams: The steps of each episode.
        groups: The group of each episode.
        mask: True for the actions of each step, shape (steps, T), m in all.

    Returns:
        Two arrays of shape (m,) and (steps,). States are equal if their observations are; admissible actions
        and earlier steps do not matter, as in the code of Feng et al.
    """
    numbers: dict[tuple[int, str], int] = {}  # of each state of a group, in the order of appearance
    anchor_of_step = []
    for number, stream in zip(groups, streams, strict=True):
        for step in stream:
            state = step.transition.state
            key = (number, state.observation)
            anchor_of_step.append(numbers.setdefault(key, len(numbers)))
    actions_of_step = mask.sum(1).cpu().numpy()  # (steps,)
    step_of_action = np.repeat(np.arange(len(anchor_of_step)), actions_of_step)
    return step_of_action, np.array(anchor_of_step)
