"""Best of n: a frozen model writes n texts, and the one that a reward model likes best is the answer.

Algorithm (Stiennon et al., "Learning to summarize from human feedback", NeurIPS 2020)::

    pairs  <- two texts for each of some prompts, and which one is preferred
    r      <- a reward model, fitted to them
    answer <- arg max of r over n texts

This is the baseline of ``rlhf``: the same pairs and the same reward model, but no training of the policy.
The KL divergence from the model is at most log n - (n - 1) / n (Beirami et al., 2024); ``kl`` reports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hunch.core import EvidenceLevel, State, Transition, World, weakest
from hunch.lm.base import LanguageModel
from hunch.methods.policy.glam import WALKS
from hunch.methods.tune.rlhf import METHOD as RLHF
from hunch.methods.tune.text import TextAgent, TextConfig
from hunch.ranges import PositiveInt
from hunch.rl.policy import Decision
from hunch.roles.policy.settings import Start
from hunch.roles.reward.preferences import check_labels, preferences_of
from hunch.roles.reward.settings import RewardModelConfig

if TYPE_CHECKING:
    from hunch.roles.reward.model import RewardModel


@dataclass(frozen=True, kw_only=True)
class BestOfNConfig(RewardModelConfig, TextConfig):
    """Settings of best of n."""

    start: Start = "weights"
    """Initial weights of the model that writes, and of the reward model below its head: those of the model,
    the same with shuffled vocabulary, or random. The last two are controls."""
    n: PositiveInt = 16
    """Number of texts from which the best is chosen (WebGPT: 64)."""


class BestOfN(TextAgent):
    """The agent of best of n.

    Args:
        config: All settings; ``options`` change single ones.
        judge: The model that compares two texts, if ``labels`` is judge.

    Raises:
        UsageError: on an unknown option, a setting out of range, or another kind of model.
        HunchError: if a model cannot be loaded.
    """

    config_class: ClassVar[type[Any]] = BestOfNConfig
    saved = ("source", "rng")

    def __init__(self, config: Any = None, judge: LanguageModel | None = None, **options: Any) -> None:
        from hunch.roles.reward.model import RewardModel  # loads torch

        super().__init__(config, **options)
        c = self.config
        self.source: RewardModel = RewardModel(c.lm or WALKS, preferences_of(c, judge), c, c.micro, c.start)
        self.models = {**self.models, **self.source.models}
        self.group = 2 if c.paired else 1

    @classmethod
    def build(cls, config: Any, models: Mapping[str, LanguageModel]) -> BestOfN:
        """Make the agent with its judge."""
        return cls(config, models.get("judge"))

    @classmethod
    def check(cls, config: Any, specs: Mapping[str, str]) -> None:
        """Check models and labels before anything is loaded; a UsageError if they cannot be used."""
        super().check(config, specs)
        check_labels(config)

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The weakest evidence level of the model, the reward model and the source of the comparisons."""
        return weakest([super().evidence, self.source.evidence])

    def begin(self, world: World, seed: int) -> None:
        """Forget all pairs, and the reward model."""
        super().begin(world, seed)
        self.source.begin(world, seed)

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Collect pairs of texts to compare, until there are enough."""
        if not self.source.fitted:
            self.source.rewards(transitions)

    def learn(self) -> dict[str, float]:
        """Fit the reward model once there are enough pairs."""
        return self.source.learn()

    def write(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Write n texts in each state, and keep the best; the first one while there is no reward model."""
        n = self.config.n if self.source.fitted else 1
        many = [state for state in states for _ in range(n)]
        drawn = super().write(many, rng)
        if n == 1:
            return drawn
        rewards = self.source.score(many, [decision.text for decision in drawn]).reshape(len(states), n)
        return [drawn[i * n + int(best)] for i, best in enumerate(rewards.argmax(1))]

    def text_metrics(self, states: Sequence[State], decisions: Sequence[Decision]) -> dict[str, float]:
        """Return the learned reward of texts, and the bound on the KL divergence, as metrics."""
        if not self.source.fitted:
            return {}
        n, proxy = self.config.n, self.source.score(states, [decision.text for decision in decisions])
        return {"kl": log(n) - (n - 1) / n, "proxy": float(proxy.mean())}

    def records(self) -> list[dict[str, Any]]:
        """Return how well the reward model fits its pairs."""
        return self.source.records()


METHOD = replace(
    RLHF,
    name="best-of-n",
    agent_class=BestOfN,
    summary="a frozen model writes n texts, and a reward model fitted to preferences chooses one",
    paper="Stiennon et al., Learning to summarize from human feedback, NeurIPS 2020",
    leaf="RL4LLM / decoding",
    changeable=("n", "temperature"),
)
