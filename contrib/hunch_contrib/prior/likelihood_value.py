"""Likelihood times value: scores an action by a model's likelihood and by its probability of success.

Algorithm (the rule of Ahn et al., "Do As I Can, Not As I Say: Grounding Language in Robotic Affordances",
CoRL 2022, with the environment's own actions for skills)::

    score(a)  <- log p(a | s) / tau  +  weight * log V(s, a)
    a         <- argmax score, or any action with probability epsilon
    V(s, a)   <- V(s, a) + rate (y - V(s, a))
    y         <- gamma V(s', a'), a' the action with the largest score in s'; at the end 1 for success, else 0

p comes from a frozen language model. V is learnt from success only, and a step limit counts as an
end. So V is from 0 to 1: the discounted probability of success under the acting policy. Either factor can be
used alone (``factor``): ``value`` is Q-learning in a table, ``likelihood`` takes the model's most likely
action. SayCan with trained and calibrated skills is :mod:`hunch.methods.planner.saycan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, State, Transition
from hunch.methods.method import Method
from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveShare, Share
from hunch_contrib.prior.leaning import LEANING, Leaning, LeaningConfig


@dataclass(frozen=True, kw_only=True)
class LikelihoodValueConfig(LeaningConfig):
    """Settings of likelihood times value."""

    factor: Literal["product", "likelihood", "value"] = "product"
    """Factors of the score: both, or only one of them."""
    tau: PositiveFloat = 1.0
    """Divisor of log p, its temperature (SayCan: 1)."""
    weight: NonNegativeFloat = 1.0
    """Weight of log V (SayCan: 1)."""
    least: PositiveShare = 0.01
    """Lower bound of V, so that actions that never worked can still be tried (our choice)."""
    initial: Share = 0.5
    """Initial V (our choice): between 0 and 1, so that untried actions rank above actions that failed."""
    gamma: Share = 0.99
    """Discount of the success probability per step (our choice)."""


class LikelihoodValue(Leaning):
    """The agent of likelihood times value; arguments as for :class:`~hunch_contrib.prior.leaning.Leaning`."""

    config_class: ClassVar[type[Any]] = LikelihoodValueConfig
    config: LikelihoodValueConfig

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the prior; None if the score does not use it."""
        return None if self.config.factor == "value" else self.prior.evidence

    def leans(self, state: State) -> bool:
        """Return whether the score uses the likelihood, in any state."""
        return self.config.factor != "value"

    def leaning(self, state: State) -> tuple[float, ...]:
        """Return the likelihood term of each action: log p(a|s) / tau."""
        return tuple(x / self.config.tau for x in self.logprobs(state)) if self.leans(state) else ()

    def scores(self, q: FloatArray, leaning: tuple[float, ...]) -> FloatArray:
        """Return the score of each action: log p / tau + weight log V, or only one of these terms."""
        c = self.config
        value = np.log(np.clip(q, c.least, 1.0))
        if not leaning:
            return value
        return np.array(leaning) if c.factor == "likelihood" else np.array(leaning) + c.weight * value

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Learn from the success of each episode, whether it terminated or was truncated."""
        super().observe(
            [replace(t, reward=float(t.done and t.success), terminated=t.done) for t in transitions]
        )


METHOD = Method(
    "likelihood-value",
    LikelihoodValue,
    "choose actions by a language model's likelihood times a learnt probability of success",
    "the rule of Ahn et al., Do As I Can, Not As I Say, CoRL 2022, for the actions of any environment",
    **LEANING,
)
