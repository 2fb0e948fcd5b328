"""Behaviour cloning over admissible actions, on the same frozen features and network as the Q-learners.

The network's values are logits. Maximum likelihood of the recorded action under their softmax is the
conservative term of :mod:`hunch.methods.prior.cql_prior` without the Bellman error. Rewards are ignored. A
baseline of CQL-Prior in Yan et al., ICLR 2025.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hunch.methods.prior.dqn_prior import DQN, DQNPriorConfig, build
from hunch.ranges import PositiveFloat

__all__ = ["BC", "BCConfig", "build"]


@dataclass(frozen=True, kw_only=True)
class BCConfig(DQNPriorConfig):
    """Behaviour cloning."""

    alpha: PositiveFloat = 1.0
    """Temperature of the cloned policy; 1 is the fitted policy."""


class BC(DQN):
    """The agent of behaviour cloning; arguments as for :class:`~hunch.methods.prior.dqn_prior.DQN`."""

    config_class = BCConfig
    fixed: ClassVar[Mapping[str, Any]] = {
        **DQN.fixed,
        "bellman": 0.0,
        "beta": 1.0,
        "explore": "posterior",
        "gamma": 0.0,
        "preset": "own",
    }
