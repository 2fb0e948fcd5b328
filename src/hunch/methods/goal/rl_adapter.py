"""RLAdapter (AdaRefiner): a large model sets sub-goals, and a small trained model reports on the player.

Algorithm (Zhang and Lu, "AdaRefiner: Refining Decisions of Language Models with Adaptive Feedback", NAACL
Findings 2024; first called RLAdapter)::

    at the beginning of an episode
        score    <- sigmoid(10 (cos(what was done, the last sub-goals) - 0.1))
        summary  <- the adapter, given what was done and the score
        goals    <- the large model picks three of a list, given the observation and the summary
        the agent sees them next to its observation
    after each stage
        train the adapter on the stage's prompts and summaries

Two models fill the goal source: the frozen one of ``--lm``, and the adapter, which is trained here. The
released code trains the adapter on all its outputs regardless of the outcome, so that the score reaches it
only as a number in the prompt; ``--mentor.keep 1`` does the same. By default only outputs that led to better
scores are used. Departures: the adapter chooses among a few summaries; an episode here corresponds to 100
steps in the paper. ``--weight 1`` also rewards reached sub-goals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hunch.core import Player
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, Share
from hunch.roles.goal import Goaled, GoaledPlayer, Goals
from hunch.roles.mentor import Mentor, MentorConfig
from hunch.roles.reward import Rewarded


@dataclass(frozen=True, kw_only=True)
class RLAdapterConfig(LearnerConfig):
    """Sub-goals from two models."""

    mentor: MentorConfig = field(default_factory=MentorConfig)
    """How sub-goals are chosen."""
    threshold: Share = 0.99
    """Cosine of event and sub-goal at which the sub-goal counts as reached."""
    weight: NonNegativeFloat = 0.0
    """Weight of a reward for reached sub-goals (paper: 0)."""
    extrinsic: NonNegativeFloat = 1.0
    """Weight of the environment's reward (paper: 1)."""
    learner: Literal["table", "dqn", "ppo"] = "ppo"
    """PPO (paper) or DQN on embeddings, or a table, to which every set of sub-goals is another task."""


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
        """Return a player with its own sub-goals."""
        mentor = self.mentor.twin(seed)
        return GoaledPlayer(self.agent.player(seed), Goals(mentor, mentor, renew=False))


def build(agent: type[RLAdapter], config: RLAdapterConfig, models: Mapping[str, LanguageModel]) -> RLAdapter:
    """Fill the large model's role with the model of ``--lm``."""
    return agent(models["lm"], config, models["encoder"])
