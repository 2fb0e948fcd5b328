"""CQL: conservative Q-learning from recorded data over all admissible actions, the baseline of CQL-Prior.

Algorithm (Kumar et al., "Conservative Q-Learning for Offline Reinforcement Learning", NeurIPS 2020)::

    for each update, on a batch of recorded (s, a, r, s')
        y     <- r + gamma * max over all a' of Q_target(s', a')
        L     <- mean of  1/2 (Q(s, a) - y)^2 + beta (log sum over all b of exp Q(s, b) - Q(s, a))
        descend on L;  Q_target <- Q_target + target_rate * (Q - Q_target)

The loss is :meth:`hunch.rl.conservative.ConservativeLearner.loss`; everything else is that of
:mod:`hunch.methods.prior.cql_prior`, with all admissible actions as candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hunch.lm.base import LanguageModel
from hunch.methods.method import ENCODER, Method
from hunch.methods.prior.cql_prior import CQLConfig, CQLPrior
from hunch.methods.prior.dqn_prior import Candidates
from hunch.methods.settings import configure
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.base import UniformPrior


class CQL(CQLPrior):
    """The agent of CQL.

    Args:
        encoder: Embeds texts for Q; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = CQLConfig

    def __init__(
        self, encoder: TextTable | None = None, config: CQLConfig | None = None, **options: Any
    ) -> None:
        self.hold(UniformPrior(), encoder, configure(type(self), config, options))

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> CQL:
        """Make the agent; the model ``encoder`` embeds texts."""
        return cls(TextTable(models["encoder"]), config)

    def new_candidates(self) -> Candidates:
        """Return candidate sets that hold all admissible actions, with equal weights."""
        return Candidates(self.prior, self.features, k=None, when="kept")


METHOD = Method(
    "cql",
    CQL,
    "conservative Q-learning from recorded data; the baseline of cql-prior",
    "Kumar et al., Conservative Q-Learning for Offline RL, NeurIPS 2020",
    models=ENCODER,
    data="needed",
    changeable=("alpha",),
)
