"""VLM-RM: the similarity of a picture and a sentence as the reward.

Algorithm (Rocamonde et al., "Vision-Language Models are Zero-Shot Reward Models for Reinforcement Learning",
ICLR 2024)::

    the user writes what the goal looks like, g, and what every picture looks like, b
    g, b  <- the embeddings of both, of length 1;  d = g - b
    repeat
        x <- the embedding of the picture after the step
        r <- constant - |P (x - g)|^2 / 2   with   P = alpha d d' / |d|^2 + (1 - alpha) I
        train any learner on r

The constant is 1 in the paper; with alpha = 0 the reward is then the cosine of picture and goal. With
alpha = 1 only the direction counts in which goal and baseline differ. The model fills one role, the reward
source. The baseline is the same learner with the environment's reward; the control has an untrained encoder.

Rewards are positive at every step, so an episode that ends early earns less: the paper's tasks have a fixed
length. Where success ends an episode, the goal may not be worth reaching, unless ``constant`` is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hunch.core import FloatArray, Transition, UsageError
from hunch.lm import require
from hunch.lm.base import LanguageModel
from hunch.lm.pictures import message
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.method import ENCODER, Method
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, Share
from hunch.roles.reward.rewarded import Rewarded, RewardSource, Shaping


@dataclass(frozen=True, kw_only=True)
class VLMRMConfig(LearnerConfig):
    """Settings of the similarity reward."""

    goal: str = ""
    """Sentence that describes a picture of the goal. Default: the task."""
    baseline: str = ""
    """Sentence that describes any picture. Default: none, and then alpha counts as 0."""
    alpha: Share = 0.5
    """Projection on the direction from baseline to goal: 0 none, 1 full (our choice; paper: 0 to 1)."""
    constant: float = 1.0
    """Constant added to the reward of each step (paper: 1). With 0 no reward is positive, so that an
    early end at the goal is best."""
    weight: NonNegativeFloat = 1.0
    """Weight of the similarity (paper: 1)."""
    extrinsic: NonNegativeFloat = 0.0
    """Weight of the environment's reward (paper: none)."""
    standardise: bool = False
    """Standardise the similarity by its running mean and standard deviation."""


class VLMRM(Rewarded):
    """The agent of VLM-RM.

    Args:
        lm: A model that embeds texts and pictures.
        config: All settings; ``options`` change single ones.
        encoder: Embeds texts, for the learners DQN and PPO.

    Raises:
        UsageError: on an unknown option, a setting out of range, or a model that cannot read pictures.
    """

    config_class: ClassVar[type[Any]] = VLMRMConfig

    def __init__(
        self, lm: LanguageModel, config: Any = None, encoder: LanguageModel | None = None, **options: Any
    ) -> None:
        c: VLMRMConfig = configure(type(self), config, options)
        self.config = c
        super().__init__(
            learner(c, encoder),
            Likeness(lm, c.goal, c.baseline, c.alpha, c.constant),
            weight=c.weight,
            extrinsic=c.extrinsic,
            shaping=Shaping(standardise=c.standardise),
        )

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check the sentences: a UsageError if goal and baseline are equal."""
        if config.goal and config.goal == config.baseline:
            raise UsageError("The goal is the baseline, so there is nothing to reward: change one of them.")


class Likeness(RewardSource):
    """Rewards the similarity of the picture after a step to a sentence; see the algorithm above.

    Args:
        lm: A model that embeds texts and pictures.
        goal: The sentence; empty for the task of the state.
        baseline: The sentence for any picture; empty for none.
        alpha: Weight of the projection on the direction from baseline to goal.
        constant: Constant added to the reward of each step.
    """

    def __init__(
        self, lm: LanguageModel, goal: str = "", baseline: str = "", alpha: float = 0.5, constant: float = 1
    ) -> None:
        self.lm = require(require(lm, "embed", needed_by="A likeness"), "see", needed_by="A likeness")
        self.goal, self.baseline, self.alpha, self.constant = goal, baseline, alpha, constant
        self.models = {"lm": lm}
        self._lines: dict[str, FloatArray] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """The model, the sentences and the weights."""
        sentences = {"goal": self.goal, "baseline": self.baseline, "alpha": self.alpha}
        return {"lm": self.lm.name, **sentences, "constant": self.constant}

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the similarity reward of each step, at most the constant.

        Raises:
            UsageError: if a state has no picture or no goal, or goal and baseline have equal embeddings.
        """
        if any(not t.next_state.pictures for t in transitions):
            raise UsageError("A state has no picture: add --env.picture.")
        seen = [t.next_state.pictures[-1].data for t in transitions]
        vectors = self.lm.embed([message(data) for data in seen])
        goals = [self.goal or t.state.aim for t in transitions]
        return [self._near(x, goal) for x, goal in zip(vectors.astype(np.float64), goals, strict=True)]

    def _near(self, x: FloatArray, goal: str) -> float:
        """Return the reward of a picture's vector, r = constant - |P (x - g)|^2 / 2."""
        g = self._vector(goal)  # (dim,), as all vectors here
        difference = x / np.linalg.norm(x) - g  # x - g, with x of length 1
        if self.baseline and self.alpha:
            # P = alpha d d' / |d|^2 + (1 - alpha) I
            d = g - self._vector(self.baseline)
            squared_length = float(d @ d)
            if not squared_length > 1e-9:  # nan is refused, too
                raise UsageError(f"The goal {goal!r} and the baseline have equal embeddings: change one.")
            along_d = self.alpha * d * float(d @ difference) / squared_length
            difference = along_d + (1 - self.alpha) * difference
        return float(self.constant - difference @ difference / 2)

    def _vector(self, text: str) -> FloatArray:
        """Return the vector of a sentence, with length 1."""
        if not text:
            raise UsageError("There is no goal: the environment states no task, so name one with --goal.")
        if text not in self._lines:
            vector = self.lm.embed([text])[0].astype(np.float64)
            self._lines[text] = vector / np.linalg.norm(vector)
        return self._lines[text]


METHOD = Method(
    "vlm-rm",
    VLMRM,
    "learn from how near each picture is to a sentence, instead of the environment's reward",
    "Rocamonde et al., Vision-Language Models are Zero-Shot Reward Models for RL, ICLR 2024",
    leaf="LLM4RL / reward",
    environments="text environments that can be drawn, with --env.picture",
    reads={"pictures"},
    models={"lm": ("embed",), **ENCODER},
    suggested=("hf:openai/clip-vit-base-patch32", "pocket?corpus=clip"),
    roles=("reward source",),
)
