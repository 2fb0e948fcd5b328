"""Novelty baselines of methods with a model's reward: the same learners, rewarded for novelty.

``count-bonus`` adds weight / sqrt(N) to the environment's reward, where N counts a state or an event over the
whole run; ``rnd`` adds the error of predicting a random network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import State, World
from hunch.lm import load
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.q_learning import QLearningConfig
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
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
    """Learning rate of the predictor (our choice; paper: 1e-4)."""
    rnd_hidden: PositiveInt = 64
    """Width of both networks (our choice)."""
    rnd_batch: PositiveInt = 32
    """Observations per training of the predictor (our choice)."""
    rnd_epochs: PositiveInt = 4
    """Updates in each training (paper)."""
    rnd_warmup: NonNegativeInt = 500
    """First steps, at random and without bonus, in which only statistics are collected (our choice)."""
    rnd_gamma: Share = 0.99
    """Discount of the sums of bonuses whose deviation scales the bonus (paper)."""
    rnd_scaled: tuple[Literal["input", "errors"], ...] = ("input", "errors")
    """What is scaled by running statistics (paper: both)."""
    table: QLearningConfig = field(default_factory=lambda: QLearningConfig(initial=3.0))
    """Settings of the table; its Q starts above what the bonus is worth (our choice)."""


class RND(Rewarded):
    """The agent of random network distillation.

    A step limit does not end the sum of bonuses; ``terminated`` does, as one Q holds both rewards (paper: it
    does not, with a value of its own for the bonus).

    Args:
        config: All settings; ``options`` change single ones.
        encoder: Embeds states. Default: that of the config.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = RNDConfig
    fixed: ClassVar[Mapping[str, Any]] = {}
    source: RandomDistillation

    def __init__(
        self, config: RNDConfig | None = None, encoder: LanguageModel | None = None, **options: Any
    ) -> None:
        c: RNDConfig = configure(type(self), config, options)
        self.config = c
        embeds = load(c.encoder) if encoder is None else encoder
        own = {name: getattr(c, f"rnd_{name}") for name in ("hidden", "batch", "epochs", "warmup", "gamma")}
        source = RandomDistillation(embeds, learning_rate=c.rnd_learning_rate, scaled=c.rnd_scaled, **own)
        super().__init__(learner(c, embeds), source, weight=c.weight, extrinsic=c.extrinsic)

    def begin(self, world: World, seed: int) -> None:
        """Begin source and agent."""
        self.seed = seed
        super().begin(world, seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Act at random in the first steps, then let the agent act."""
        if not self.source.warming:
            return super().act(states)
        rng = np.random.default_rng([self.seed, self.source.steps])
        return [state.options[int(rng.integers(len(state.options)))] for state in states]


def build(
    agent: type[CountBonus] | type[RND], config: Any, models: Mapping[str, LanguageModel]
) -> CountBonus | RND:
    """Build the agent; no language model fills a role."""
    return agent(config, models["encoder"])
