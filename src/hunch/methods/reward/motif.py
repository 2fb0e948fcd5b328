"""Motif: intrinsic rewards from a language model's preferences between captions.

Algorithm (Klissarov, D'Oro et al., "Motif: Intrinsic Motivation from Artificial Intelligence Feedback", ICLR
2024)::

    collect captions of what happens, with any policy
    draw pairs of them; the model says which shows more progress: 1, 2 or none
    fit r by the cross-entropy of softmax(r1, r2); standardise it over the captions
    eps    <- the median of r over the distinct captions
    r_int  <- r if r > eps, else 0; divided by N(caption)^beta, where N counts within the episode
    learn from extrinsic * r_env + weight * r_int

The model fills one role, the reward source (:class:`hunch.roles.preference.Preference`); threshold and counts
are those of :class:`hunch.roles.reward.Rewarded`. The reward depends only on the caption.

Without recorded data, captions are collected in the first steps of the run, with the environment's reward
only, so that these steps are counted. The published runs use a separate data set.
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
from hunch.roles.preference import Preference, PreferenceConfig
from hunch.roles.reward import Rewarded, Shaping


@dataclass(frozen=True, kw_only=True)
class MotifConfig(LearnerConfig):
    """Rewards from preferences."""

    preference: PreferenceConfig = field(default_factory=PreferenceConfig)
    """How captions are compared and the reward is fitted."""
    quantile: Share | None = 0.5
    """Rewards count above this quantile over distinct captions (released code: 0.5); none for no limit."""
    beta: NonNegativeFloat = 3.0
    """Rewards are divided by N(caption)^beta, with N counted per episode (released code: 3)."""
    recall: bool = True
    """Show the learner the rewarded captions so far in the episode (paper: a recurrent learner)."""
    weight: NonNegativeFloat = 0.1
    """Weight of the fitted reward (released code: 0.1)."""
    extrinsic: NonNegativeFloat = 10.0
    """Weight of the environment's reward (released code: 10 for sparse rewards, 0.1 for the score)."""


class Motif(Rewarded):
    """The agent.

    Args:
        lm: A model that can answer.
        config: All settings; ``options`` change single ones.
        encoder: Embeds captions, and states for the learner DQN. Default: that of the config.

    Raises:
        UsageError: on an unknown option, a setting out of range, or a model that cannot answer.
    """

    config_class: ClassVar[type[Any]] = MotifConfig
    fixed: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        lm: LanguageModel,
        config: MotifConfig | None = None,
        encoder: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        c: MotifConfig = configure(type(self), config, options)
        self.config = c
        embeds = load(c.encoder) if encoder is None else encoder
        super().__init__(
            learner(c, embeds),
            Preference(lm, embeds, c.preference),
            weight=c.weight,
            extrinsic=c.extrinsic,
            shaping=Shaping(quantile=c.quantile, beta=c.beta, recall=c.recall),
        )


def build(agent: type[Motif], config: MotifConfig, models: Mapping[str, LanguageModel]) -> Motif:
    """Fill the judge's role with the model of ``--lm``."""
    return agent(models["lm"], config, models["encoder"])
