"""CQL-Prior: conservative Q-learning from recorded data, confined to a language model's proposals.

Algorithm (Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025,
sections 3.1 and 3.2; conservative Q-learning is Kumar et al., NeurIPS 2020)::

    for each update, on a batch of recorded (s, a, r, s')
        C^k(s), C^k(s')  <- k draws each from p_LM                            the prior's proposals
        y     <- r + gamma * max over a' in C^k(s') of Q_target(s', a')
        L     <- mean of  1/2 (Q(s, a) - y)^2 + beta (log sum over b in C^k(s) of exp Q(s, b) - Q(s, a))
        descend on L;  Q_target <- Q_target + target_rate * (Q - Q_target)
    act by softmax(Q(s, a_i) / alpha) over a_i in C^k(s)

It is DQN-Prior with the second term (:mod:`hunch.rl.conservative`), so DQN-Prior on recorded data
is its baseline without that term, and with all admissible actions as candidates it is CQL.

The recorded action may not be among C^k(s). Then the second term, as in the paper, can fall without bound as
Q(s, a) rises, and only the first term limits it. With ``floor`` the sum is over C^k(s) and a, so that the
term is never negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hunch.core import FloatArray
from hunch.methods.method import Method
from hunch.methods.prior.dqn_prior import PRIOR, Candidates, DQNPrior, When, choose
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from hunch.renamed import Renamed
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.base import ActionPrior, Proposal
from hunch.roles.prior.kinds import PriorConfig

if TYPE_CHECKING:
    from hunch.rl.conservative import ConservativeLearner

WARMUP: Final = 500
"""Environment steps before the first update, if there is an environment besides the data (ours)."""


@dataclass(frozen=True, kw_only=True)
class CQLConfig(Renamed):
    """Settings of conservative Q-learning over candidates."""

    renamed: ClassVar[Mapping[str, str]] = {"clip": "max_norm"}

    beta: NonNegativeFloat = 5.0
    """Weight of the conservative term log sum exp Q(s, .) - Q(s, a) (paper)."""
    floor: bool = False
    """Include the recorded action in the candidates of the conservative term, so that the term is never
    negative (our choice)."""
    alpha: PositiveFloat = 0.02
    """Temperature of the posterior softmax(Q / alpha) (paper: 0.01 to 0.1)."""
    joint: bool = False
    """Embed state and action as one text, as in the paper; this needs one model call per pair."""
    encoder: str = "minilm"
    """Frozen text encoder for Q, given by its spec (paper: BERT)."""
    gamma: Share = 0.9
    """Discount per step (ours, the best of 0.9, 0.95 and 0.97 for DQN; released code: 0.99)."""
    learning_rate: PositiveFloat = 5e-4
    """Learning rate of Adam (paper)."""
    max_norm: NonNegativeFloat = 0.0
    """Maximum gradient norm; larger gradients are scaled down, 0 for no limit (released code: 1)."""
    batch_size: PositiveInt = 128
    """Transitions per update (paper)."""
    update_every: PositiveInt = 2
    """Environment steps per update, if there is an environment besides the data (our choice)."""
    hidden: PositiveInt = 128
    """Width of the three-layer perceptron (released code: 64)."""


@dataclass(frozen=True, kw_only=True)
class CQLPriorConfig(CQLConfig):
    """Settings of conservative Q-learning over the proposals of a prior."""

    k: PositiveInt | None = 5
    """Proposals per state (paper: 5); none for all actions with a positive probability under the prior."""
    proposals: When = "visited"
    """When proposals are drawn: once per state, on each arrival (authors' code), or at each use."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """How the language model becomes a prior."""


class CQLPrior(DQNPrior):
    """The agent of CQL-Prior.

    Args:
        prior: Proposes candidates; frozen.
        encoder: Embeds texts for Q; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = CQLPriorConfig

    def __init__(
        self,
        prior: ActionPrior,
        encoder: TextTable | None = None,
        config: CQLPriorConfig | None = None,
        **options: Any,
    ) -> None:
        self.hold(prior, encoder, configure(type(self), config, options))

    def new_candidates(self) -> Candidates:
        """Return the candidate sets C^k(s), of which there are none yet."""
        return Candidates(self.prior, self.features, self.config.k, self.config.proposals)

    def new_learner(self, seed: int, recorded: int) -> ConservativeLearner:
        """Return a new Q whose update descends on L, and room for the recorded transitions."""
        from hunch.rl.conservative import ConservativeLearner  # loads torch

        c = self.config
        return ConservativeLearner(
            self.features,
            seed,
            beta=c.beta,
            floor=c.floor,
            hidden=c.hidden,
            learning_rate=c.learning_rate,
            gamma=c.gamma,
            max_norm=c.max_norm,
            k=self.proposals.stored,
            data=recorded,
        )

    def explore(self, proposal: Proposal, q: FloatArray) -> int:
        """Draw a candidate from the posterior softmax(Q / alpha); return the index of the action."""
        return choose(proposal, q, self.config.alpha, self.rng)

    @property
    def playing_alpha(self) -> float:
        """Temperature of the posterior in evaluations."""
        return float(self.config.alpha)

    @property
    def due(self) -> int:
        """Number of updates that should have been made so far, if there is an environment."""
        return int(max(0, self.steps - WARMUP) // self.config.update_every)


METHOD = Method(
    "cql-prior",
    CQLPrior,
    "conservative Q-learning from recorded data, over k proposals of a model",
    **PRIOR,
    data="needed",
)
