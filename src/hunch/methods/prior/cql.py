"""CQL: conservative Q-learning from recorded data over all admissible actions, the baseline of CQL-Prior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hunch.methods.method import ENCODER, Method
from hunch.methods.prior.cql_prior import CQLPrior, CQLPriorConfig
from hunch.methods.prior.dqn import DQN


class CQL(CQLPrior, DQN):
    """The agent of CQL; arguments as for :class:`~hunch.methods.prior.dqn.DQN`."""

    config_class = CQLPriorConfig
    fixed: ClassVar[Mapping[str, Any]] = {**DQN.fixed, **CQLPrior.fixed}


METHOD = Method(
    "cql",
    CQL,
    "conservative Q-learning from recorded data; the baseline of cql-prior",
    "Kumar et al., Conservative Q-Learning for Offline RL, NeurIPS 2020",
    models=ENCODER,
    data="needed",
    changeable=("alpha",),
)
