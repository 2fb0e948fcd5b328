"""CQL-Prior: conservative Q-learning from recorded data, confined to a language model's proposals; and CQL.

Algorithm (Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025,
sections 3.1 and 3.2; conservative Q-learning is Kumar et al., NeurIPS 2020)::

    for each update, on a batch of recorded (s, a, r, s')
        C^k(s), C^k(s')  <- k draws each from p_LM                            the prior's proposals
        y     <- r + gamma * max over a' in C^k(s') of Q_target(s', a')
        L     <- 0.5 (Q(s, a) - y)^2 + beta (log sum over b in C^k(s) of exp Q(s, b) - Q(s, a))
        descend on L;  Q_target <- Q_target + rate * (Q - Q_target)
    act by softmax(Q(s, a_i) / alpha) over a_i in C^k(s)

It is DQN-Prior with the second term (:mod:`hunch.rl.conservative`), so DQN-Prior on recorded data
is its baseline without that term, and with all admissible actions as candidates it is CQL.

The recorded action may not be among C^k(s). Then the second term, as in the paper, can fall without bound as
Q(s, a) rises, and only the first term limits it. With ``floor`` the sum is over C^k(s) and a, so that the
term is never negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hunch.methods.method import Method
from hunch.methods.prior.dqn_prior import PRIOR, DQNPrior, DQNPriorConfig
from hunch.ranges import NonNegativeFloat

if TYPE_CHECKING:
    from hunch.rl.q_learning import QLearner


@dataclass(frozen=True, kw_only=True)
class CQLPriorConfig(DQNPriorConfig):
    """Settings of conservative Q-learning over the proposals of a prior."""

    beta: NonNegativeFloat = 5.0
    """Weight of the conservative term log sum exp Q(s, .) - Q(s, a) (paper)."""
    floor: bool = False
    """Include the recorded action in the candidates of the conservative term, so that the term is never
    negative (our choice)."""


class CQLPrior(DQNPrior):
    """The agent of CQL-Prior; arguments as for :class:`~hunch.methods.prior.dqn_prior.DQNPrior`."""

    config_class = CQLPriorConfig
    fixed: ClassVar[Mapping[str, Any]] = {
        name: getattr(CQLPriorConfig(), name) for name in ("explore", "epsilon", "warmup")
    }

    def new_learner(self, seed: int, data: int) -> QLearner:
        """Return a new Q-learner whose loss has the conservative term."""
        from hunch.rl.conservative import ConservativeLearner

        return ConservativeLearner(self.features, seed, data=data, **self.rule())

    def rule(self) -> dict[str, Any]:
        """Return the settings of the update, with the weight of the conservative term."""
        return {**super().rule(), "beta": self.config.beta, "floor": self.config.floor}


METHOD = Method(
    "cql-prior",
    CQLPrior,
    "conservative Q-learning from recorded data, over k proposals of a model",
    **PRIOR,
    data="needed",
)
