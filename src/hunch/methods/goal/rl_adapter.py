"""RLAdapter (AdaRefiner): sub-goals of a large model that a small, trained one tells how the player does.

Algorithm (Zhang and Lu, "AdaRefiner: Refining Decisions of Language Models with Adaptive Feedback", NAACL
Findings 2024; first called RLAdapter)::

    where an episode begins
        score    <- sigmoid(10 (cos(what was done, the last sub-goals) - 0.1))
        summary  <- the adapter, by what was done and the score
        goals    <- the large model picks three of a list, by the observation and the summary
        the agent sees them beside its observation
    after each stage
        train the adapter on the stage's prompts and summaries

Two models fill the source of goals: the frozen one of ``--lm``, and the adapter, which is trained here. The
released code trains the adapter on all that it said, whatever came of it, so that the score reaches it as a
number in the prompt only; ``--mentor.keep 1`` does the same. By default those are kept that led to better
scores. Departures: the adapter chooses among a few summaries; sub-goals that are reached are rewarded, too,
as a table makes little of words beside an observation (``--weight 0 --table.see-task`` is the paper's); an
episode is what 100 steps are in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hunch.core import Player
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.q_learning import QLearningConfig
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, Share
from hunch.roles.goal import Goaled, GoaledPlayer, Goals
from hunch.roles.mentor import Mentor, MentorConfig
from hunch.roles.reward import Rewarded


@dataclass(frozen=True, kw_only=True)
class RLAdapterConfig(LearnerConfig):
    """Sub-goals by two models."""

    mentor: MentorConfig = field(default_factory=MentorConfig)
    """How sub-goals come about."""
    threshold: Share = 0.99
    """Cosine of event and sub-goal from which on it is reached."""
    weight: NonNegativeFloat = 1.0
    """Weight of the reward for sub-goals (ours; paper: 0)."""
    extrinsic: NonNegativeFloat = 1.0
    """Weight of the environment's reward (paper: 1)."""
    table: QLearningConfig = field(default_factory=lambda: QLearningConfig(see_task=False))
    """Settings of the table, which by default does not see the sub-goals."""


class RLAdapter(Goaled):
    """The agent.

    Args:
        lm: A model that writes.
        config: All settings; ``options`` change single ones.
        encoder: Compares what was done with sub-goals, and embeds states for DQN. Default: that of the
            config.

    Raises:
        UsageError: on an unknown option, a setting out of range, or a model that cannot answer.
    """

    config_class: ClassVar[type[Any]] = RLAdapterConfig
    fixed: ClassVar[Mapping[str, Any]] = {}
    mentor_class: ClassVar[type[Mentor]] = Mentor

    def __init__(
        self,
        lm: LanguageModel,
        config: RLAdapterConfig | None = None,
        encoder: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        c: RLAdapterConfig = configure(type(self), config, options)
        self.config = c
        embeds = load(c.encoder) if encoder is None else encoder
        self.mentor = self.mentor_class(lm, embeds, c.mentor, c.threshold)
        rewarded = Rewarded(
            learner(c, embeds), self.mentor.achievement, weight=c.weight, extrinsic=c.extrinsic
        )
        super().__init__(rewarded, self.mentor, self.mentor)

    def player(self, seed: int) -> Player:
        """A player that is told sub-goals of its own."""
        mentor = self.mentor.twin(seed)
        return GoaledPlayer(self.agent.player(seed), Goals(mentor, mentor, renew=False))


def build(agent: type[RLAdapter], config: RLAdapterConfig, models: Mapping[str, LanguageModel]) -> RLAdapter:
    """Fill the large model's role with the model of ``--lm``."""
    return agent(models["lm"], config, models["encoder"])
