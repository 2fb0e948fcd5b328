"""Novelty baselines of methods with a model's reward: the same learners, rewarded for novelty.

``count-bonus`` adds weight / sqrt(N) to the environment's reward, where N counts a state or an event over the
whole run; ``rnd`` adds the error of predicting a random network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveInt
from hunch.roles.novelty import Counts, RandomDistillation
from hunch.roles.reward import Rewarded


@dataclass(frozen=True, kw_only=True)
class NoveltyConfig(LearnerConfig):
    """Rewards for novelty."""

    weight: NonNegativeFloat = 0.1
    """Weight of the bonus (our choice)."""
    extrinsic: NonNegativeFloat = 10.0
    """Weight of the environment's reward (our choice, as in motif)."""


@dataclass(frozen=True, kw_only=True)
class CountBonusConfig(NoveltyConfig):
    """A bonus for rare states or events."""

    of: Literal["state", "event"] = "state"
    """What is counted."""


class CountBonus(Rewarded):
    """The agent of the count bonus.

    Args:
        config: All settings; ``options`` change single ones.
        encoder: Embeds states for the learner DQN.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = CountBonusConfig
    fixed: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self, config: CountBonusConfig | None = None, encoder: LanguageModel | None = None, **options: Any
    ) -> None:
        c: CountBonusConfig = configure(type(self), config, options)
        self.config = c
        super().__init__(learner(c, encoder), Counts(c.of), weight=c.weight, extrinsic=c.extrinsic)


@dataclass(frozen=True, kw_only=True)
class RNDConfig(NoveltyConfig):
    """Random network distillation."""

    rnd_learning_rate: PositiveFloat = 1e-3
    """Learning rate of the predictor (our choice)."""
    rnd_hidden: PositiveInt = 64
    """Width of both networks (our choice)."""
    rnd_batch: PositiveInt = 32
    """Observations per update of the predictor (our choice)."""


class RND(Rewarded):
    """The agent of random network distillation.

    Args:
        config: All settings; ``options`` change single ones.
        encoder: Embeds states. Default: that of the config.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = RNDConfig
    fixed: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self, config: RNDConfig | None = None, encoder: LanguageModel | None = None, **options: Any
    ) -> None:
        c: RNDConfig = configure(type(self), config, options)
        self.config = c
        embeds = load(c.encoder) if encoder is None else encoder
        source = RandomDistillation(embeds, c.rnd_learning_rate, c.rnd_hidden, c.rnd_batch)
        super().__init__(learner(c, embeds), source, weight=c.weight, extrinsic=c.extrinsic)


def build(
    agent: type[CountBonus] | type[RND], config: Any, models: Mapping[str, LanguageModel]
) -> CountBonus | RND:
    """Build the agent; no language model fills a role."""
    return agent(config, models["encoder"])
