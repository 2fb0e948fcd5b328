"""A bonus for rare states or events, a baseline of methods with a model's reward.

The bonus is weight / sqrt(N), where N counts a state or an event over the whole run (Strehl and Littman,
2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hunch.core import Transition, World
from hunch.lm.base import LanguageModel
from hunch.methods.learners import LearnerConfig, learner
from hunch.methods.method import ENCODER, Method
from hunch.methods.settings import configure
from hunch.ranges import NonNegativeFloat
from hunch.roles.reward.rewarded import Rewarded, RewardSource


class Counts(RewardSource):
    """A bonus of 1 / sqrt(N), where N counts a text over the whole run (Strehl and Littman, 2008).

    Args:
        of: Texts to count: observations or events.
    """

    evidence = None
    saved = ("counts",)

    def __init__(self, of: Literal["state", "event"] = "state") -> None:
        self.of = of

    @property
    def settings(self) -> dict[str, Any]:
        """The kind of text that is counted."""
        return {"of": self.of}

    def begin(self, world: World, seed: int) -> None:
        """Forget all counts."""
        self.counts: dict[str, int] = {}

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the bonus of each step; the counts include all steps of this batch."""
        texts = [t.next_state.observation if self.of == "state" else t.event for t in transitions]
        for text in texts:
            self.counts[text] = self.counts.get(text, 0) + 1
        return [self.counts[text] ** -0.5 for text in texts]


@dataclass(frozen=True, kw_only=True)
class NoveltyConfig(LearnerConfig):
    """Settings of methods that reward novelty."""

    weight: NonNegativeFloat = 0.1
    """Weight of the novelty bonus (our choice)."""
    extrinsic: NonNegativeFloat = 10.0
    """Weight of the environment's reward (our choice, as in motif)."""


@dataclass(frozen=True, kw_only=True)
class CountBonusConfig(NoveltyConfig):
    """Settings of the count bonus."""

    of: Literal["state", "event"] = "state"
    """Texts to count: observations (state), or events."""


class CountBonus(Rewarded):
    """The agent of the count bonus.

    Args:
        config: All settings; ``options`` change single ones.
        encoder: Embeds states for the learner DQN.

    Raises:
        UsageError: on an unknown option, or a setting out of range.
    """

    config_class: ClassVar[type[Any]] = CountBonusConfig

    def __init__(
        self, config: CountBonusConfig | None = None, encoder: LanguageModel | None = None, **options: Any
    ) -> None:
        c: CountBonusConfig = configure(type(self), config, options)
        self.config = c
        super().__init__(learner(c, encoder), Counts(c.of), weight=c.weight, extrinsic=c.extrinsic)


METHOD = Method(
    "count-bonus",
    CountBonus,
    "learn from a bonus for rare states or events; a baseline of motif and ellm",
    "Strehl and Littman, An analysis of model-based interval estimation, JCSS 2008",
    reads={"events"},
    optional={"events"},
    models=ENCODER,
)
