"""DQN over all admissible actions (Mnih et al., 2015): DQN-Prior with an uninformed prior and no draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hunch.core import Transition
from hunch.lm.base import LanguageModel
from hunch.methods.method import ENCODER, Method
from hunch.methods.prior.dqn_prior import DQNPrior
from hunch.roles.encoder.features import TextTable
from hunch.roles.prior.base import UniformPrior
from hunch.roles.prior.kinds import PriorConfig


class DQN(DQNPrior):
    """The agent of DQN.

    Args:
        encoder: Embeds texts for Q; frozen. Default: that of the config.
        config: All settings; ``options`` change single ones.
    """

    fixed: ClassVar[Mapping[str, Any]] = {
        "k": None,
        "proposals": "kept",
        "prior": PriorConfig(kind="uniform"),
    }

    def __init__(self, encoder: TextTable | None = None, config: Any = None, **options: Any) -> None:
        super().__init__(UniformPrior(), encoder, config, **options)

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> DQN:
        """Make the agent; the model ``encoder`` embeds texts."""
        return cls(TextTable(models["encoder"]), config)

    def relearn(self, transitions: Sequence[Transition]) -> None:
        """Replace the replay buffer by these steps, whose rewards have changed; Q keeps its weights."""
        self.learner.replay.added = 0
        for row in self._rows(transitions):
            self.learner.replay.add(row)


METHOD = Method(
    "dqn",
    DQN,
    "Q-learning over all admissible actions; the baseline of dqn-prior",
    "Mnih et al., Human-level control through deep reinforcement learning, Nature 2015",
    models=ENCODER,
    changeable=("alpha",),
)
