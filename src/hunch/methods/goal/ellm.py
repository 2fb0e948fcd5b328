"""ELLM: exploration with goals that a language model suggests.

Algorithm (Du et al., "Guiding Pretraining in Reinforcement Learning with Large Language Models", ICML
2023)::

    in every state
        the model suggests goals that are sensible there
        goals reached in this episode are dropped
        act; caption what happened
        reward: the largest cosine between the caption and a goal, if it reaches a threshold
    learn from these rewards only; another run may learn a task afterwards

The model fills one role, the goal source (:class:`hunch.roles.goal.suggestions.Suggestions`). An encoder's
similarity of caption and goal decides whether a goal is reached, and is the reward
(:class:`hunch.roles.reward.similarity.Similarity`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.method import ENCODER, PROPOSES, Method
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, Share
from hunch.roles.goal.goaled import Goaled
from hunch.roles.goal.suggestions import SuggestionConfig, Suggestions
from hunch.roles.reward.rewarded import Rewarded
from hunch.roles.reward.similarity import Similarity


@dataclass(frozen=True, kw_only=True)
class ELLMConfig(LearnerConfig):
    """Settings of ELLM: rewards for goals that a model suggests."""

    suggestions: SuggestionConfig = field(default_factory=SuggestionConfig)
    """How the model is asked for goals."""
    threshold: Share = 0.99
    """Minimum cosine of caption and goal for a goal to count as reached (released code: 0.99 in Crafter)."""
    weight: NonNegativeFloat = 1.0
    """Weight of the reward for reached goals."""
    extrinsic: NonNegativeFloat = 0.0
    """Weight of the environment's reward (paper: 0 while pretraining)."""
    nonsense: tuple[str, ...] = ()
    """Fixed goals for all states, which replace the model's goals; a control."""


class ELLM(Goaled):
    """The agent of ELLM.

    Args:
        lm: A model that writes, scores or embeds.
        config: All settings; ``options`` change single ones.
        encoder: Compares captions and goals, and embeds states for DQN. Default: that of the config.

    Raises:
        UsageError: on an unknown option, a setting out of range, or an unsuitable model.
    """

    config_class: ClassVar[type[Any]] = ELLMConfig

    def __init__(
        self,
        lm: LanguageModel,
        config: ELLMConfig | None = None,
        encoder: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        c: ELLMConfig = configure(type(self), config, options)
        self.config = c
        encoder = load(c.encoder) if encoder is None else encoder
        achievement = Similarity(encoder, c.threshold, of_task=False)  # it learns from suggested goals alone
        rewarded = Rewarded(learner(c, encoder), achievement, weight=c.weight, extrinsic=c.extrinsic)
        suggestions = Suggestions(lm, c.suggestions, c.nonsense)
        super().__init__(rewarded, suggestions, achievement, renew=True)  # new goals in every state


METHOD = Method(
    "ellm",
    ELLM,
    "learn by reaching goals that a model suggests in every state",
    "Du et al., Guiding Pretraining in Reinforcement Learning with LLMs, ICML 2023",
    leaf="LLM4RL / goal",
    environments="environments that tell events",
    reads={"events"},
    models={"lm": PROPOSES, **ENCODER},
    lm="minilm",
    suggested=("openai:gpt-4o-mini", "scripted:suggest"),
    roles=("goal source",),
    control="uniform goals",
)
