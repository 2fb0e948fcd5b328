"""Reward design with a language model that judges each finished episode by the user's objective.

Algorithm (Kwon et al., "Reward Design with Language Models", ICLR 2023)::

    the user writes the objective once: a sentence, or examples
    repeat
        play an episode
        ask the model about its text: does this outcome satisfy the objective?
        the last step's reward is 1 for yes and 0 for no; there is no other reward
        train any learner on it

The model fills one role, the reward source (:class:`hunch.roles.reward.judge.Judge`). The learner is
Q-learning in a table, or DQN on embedded texts. The baseline is the same learner with the environment's
reward, which in the environments of the paper is the true objective.

In two of the paper's three domains the model was not asked in training: all outcomes were labelled first, and
the labels were copied by hand (released code). Here every episode is judged; repeated questions are cached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.method import ENCODER, Method
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat
from hunch.roles.reward.judge import Judge, JudgeConfig
from hunch.roles.reward.rewarded import Rewarded, Shaping


@dataclass(frozen=True, kw_only=True)
class KwonConfig(LearnerConfig):
    """Settings of a judge's verdicts as rewards."""

    judge: JudgeConfig = field(default_factory=JudgeConfig)
    """How the model judges episodes."""
    judge_weight: NonNegativeFloat = 1.0
    """Weight of the verdicts, which are 0 or 1 (paper: 1)."""
    extrinsic: NonNegativeFloat = 0.0
    """Weight of the environment's reward (paper: none)."""
    standardise: bool = False
    """Standardise verdicts by their running mean and standard deviation (released code: negotiation). Steps
    before the end of an episode have no verdict, so they earn nothing."""


class Kwon(Rewarded):
    """The agent of reward design with a judge.

    Args:
        lm: A model that generates, scores or labels.
        config: All settings; ``options`` change single ones.
        encoder: Embeds texts, for the learner DQN.

    Raises:
        UsageError: on an unknown option, a setting out of range, or an unsuitable model.
    """

    config_class: ClassVar[type[Any]] = KwonConfig

    def __init__(
        self,
        lm: LanguageModel,
        config: KwonConfig | None = None,
        encoder: LanguageModel | None = None,
        **options: Any,
    ) -> None:
        c: KwonConfig = configure(type(self), config, options)
        self.config = c
        super().__init__(
            learner(c, encoder),
            Judge(lm, c.judge),
            weight=c.judge_weight,
            extrinsic=c.extrinsic,
            shaping=Shaping(standardise=c.standardise),
        )


METHOD = Method(
    "kwon",
    Kwon,
    "learn from a model's verdict on each episode instead of the environment's reward",
    "Kwon et al., Reward Design with Language Models, ICLR 2023",
    leaf="LLM4RL / reward",
    reads={"events"},
    optional={"events"},
    models={"lm": ("generate", "score", "label", "decide"), **ENCODER},
    suggested=("openai:gpt-4o-mini", "scripted:judge"),
    roles=("reward source",),
    control="uninformed judge",
)
