"""ELLM: exploration with goals that a language model suggests.

Algorithm (Du et al., "Guiding Pretraining in Reinforcement Learning with Large Language Models", ICML
2023)::

    in every state
        the model suggests goals that are sensible there
        goals reached in this episode are dropped
        act; caption what happened
        reward: the largest cosine between the caption and a goal, if it reaches a threshold
    learn from these rewards only; a task may be learnt afterwards

The model fills one role, the goal source (:class:`hunch.roles.suggestions.Suggestions`). An encoder's
similarity of caption and goal decides whether a goal is reached, and is the reward
(:class:`hunch.roles.similarity.Similarity`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, Share
from hunch.roles.goal import Goaled
from hunch.roles.reward import Rewarded
from hunch.roles.similarity import Similarity
from hunch.roles.suggestions import SuggestionConfig, Suggestions


@dataclass(frozen=True, kw_only=True)
class ELLMConfig(LearnerConfig):
    """Rewards for goals that a model suggests."""

    suggestions: SuggestionConfig = field(default_factory=SuggestionConfig)
    """How the model is asked for goals."""
    threshold: Share = 0.99
    """Cosine of caption and goal at which the goal counts as reached (released code: 0.99 in Crafter)."""
    weight: NonNegativeFloat = 1.0
    """Weight of the reward for goals."""
    extrinsic: NonNegativeFloat = 0.0
    """Weight of the environment's reward (paper: 0 while pretraining)."""
    nonsense: tuple[str, ...] = ()
    """Fixed goals to pursue in all states instead of the model's; a control."""


class ELLM(Goaled):
    """The agent.

    Args:
        lm: A model that writes, scores or embeds.
        config: All settings; ``options`` change single ones.
        encoder: Compares captions and goals, and embeds states for DQN. Default: that of the config.

    Raises:
        UsageError: on an unknown option, a setting out of range, or a model that cannot answer.
    """

    config_class: ClassVar[type[Any]] = ELLMConfig
    fixed: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        lm: LanguageModel,
        config: ELLMConfig | None = None,
        encoder: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        c: ELLMConfig = configure(type(self), config, options)
        self.config = c
        embeds = load(c.encoder) if encoder is None else encoder
        achievement = Similarity(embeds, c.threshold)
        rewarded = Rewarded(learner(c, embeds), achievement, weight=c.weight, extrinsic=c.extrinsic)
        super().__init__(rewarded, Suggestions(lm, c.suggestions, c.nonsense), achievement, renew=True)


def build(agent: type[ELLM], config: ELLMConfig, models: Mapping[str, LanguageModel]) -> ELLM:
    """Fill the role of the goal source with the model of ``--lm``."""
    return agent(models["lm"], config, models["encoder"])
