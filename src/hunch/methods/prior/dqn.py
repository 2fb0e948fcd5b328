"""DQN: deep Q-learning over all admissible actions, the baseline of DQN-Prior.

Algorithm (Mnih et al., "Human-level control through deep reinforcement learning", Nature 2015)::

    for each step
        a  ~  softmax(Q(s, .) / alpha), or epsilon-greedy
        store (s, a, r, s')
        y  <- r + gamma * max over all a' of Q_target(s', a')
        descend on 1/2 mean (Q(s, a) - y)^2
        Q_target <- Q_target + target_rate * (Q - Q_target)

The update is :meth:`hunch.rl.q_learning.QLearner.update`; the loop around it is that of
:mod:`hunch.methods.prior.dqn_prior`, with all admissible actions as candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hunch.core import Transition
from hunch.lm.base import LanguageModel
from hunch.methods.method import ENCODER, Method
from hunch.methods.prior.dqn_prior import Candidates, DQNConfig, DQNPrior
from hunch.methods.settings import configure
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.base import UniformPrior


class DQN(DQNPrior):
    """The agent of DQN.

    Args:
        encoder: Embeds texts for Q; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = DQNConfig

    def __init__(
        self, encoder: TextTable | None = None, config: DQNConfig | None = None, **options: Any
    ) -> None:
        self.hold(UniformPrior(), encoder, configure(type(self), config, options))

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> DQN:
        """Make the agent; the model ``encoder`` embeds texts."""
        return cls(TextTable(models["encoder"]), config)

    def new_candidates(self) -> Candidates:
        """Return candidate sets that hold all admissible actions, with equal weights."""
        return Candidates(self.prior, self.features, k=None, when="kept")

    def relearn(self, transitions: Sequence[Transition]) -> None:
        """Replace the replay buffer by these steps, whose rewards have changed; Q keeps its weights."""
        # These steps have been taken: none of them arrives in a state that awaits an action now.
        self.proposals.pending.clear()
        self.learner.replay.added = 0
        for row in self.rows(transitions):
            self.learner.replay.add(row)
        self.proposals.pending.clear()


METHOD = Method(
    "dqn",
    DQN,
    "Q-learning over all admissible actions; the baseline of dqn-prior",
    "Mnih et al., Human-level control through deep reinforcement learning, Nature 2015",
    models=ENCODER,
    changeable=("alpha",),
)
