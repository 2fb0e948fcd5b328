"""Behaviour cloning over admissible actions, on the same frozen features and network as the Q-learners.

The network's values are logits. Maximum likelihood of the recorded action under their softmax is the
conservative term of :mod:`hunch.methods.prior.cql_prior` without the Bellman error. Rewards are ignored. A
baseline of CQL-Prior in Yan et al., ICLR 2025.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hunch.methods.method import ENCODER, Method
from hunch.methods.prior.cql import CQL
from hunch.methods.prior.cql_prior import CQLPriorConfig
from hunch.ranges import PositiveFloat


@dataclass(frozen=True, kw_only=True)
class BCConfig(CQLPriorConfig):
    """Settings of behaviour cloning."""

    alpha: PositiveFloat = 1.0
    """Temperature of the cloned policy softmax(logits / alpha); 1 is the fitted policy."""


class BC(CQL):
    """The agent of behaviour cloning; arguments as for :class:`~hunch.methods.prior.dqn.DQN`."""

    config_class = BCConfig
    fixed: ClassVar[Mapping[str, Any]] = {**CQL.fixed, "beta": 1.0, "floor": False, "gamma": 0.0}

    def rule(self) -> dict[str, Any]:
        """Return the settings of the update: CQL without the Bellman error, so only the log-likelihood."""
        return {**super().rule(), "bellman": False}


METHOD = Method(
    "bc",
    BC,
    "behaviour cloning: take the recorded actions",
    "Pomerleau, ALVINN, NeurIPS 1988",
    models=ENCODER,
    data="needed",
    changeable=("alpha",),
)
