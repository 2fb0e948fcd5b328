"""InstructRL with Q-learning: an instruction to a language model selects one of several good policies.

Algorithm (Hu and Sadigh, "Language Instructed Reinforcement Learning for Human-AI Coordination", ICML 2023,
section 4, instructQ, and its released code)::

    p(. | s)  <- the model's probabilities of the actions, given the instruction and the observation
    a         <- argmax Q(s, .) + lambda log p(. | s)      or any action with probability epsilon
    target    <- r + gamma Q(s', a'),  a' = argmax Q(s', .) + lambda log p(. | s')

If several conventions are equally good, plain Q-learning may end in any of them; lambda favours the
one that the instruction asks for. Q contains no bonus, so the cost of a wrong prior shows in the return. With
lambda 0 it is :mod:`hunch.methods.q_learning`.

In an environment of several players the streams share the agent (self-play), and lambda may differ between
players. Departures: each player learns from its own steps (the released Say-Select has one value for both,
VDN; its Hanabi does not), from the last step of an episode backwards, once per episode without a replay
buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, State
from hunch.methods.method import Method
from hunch.ranges import Decay, NonNegativeFloat, PositiveFloat, Share
from hunch_contrib.prior.leaning import LEANING, Leaning, LeaningConfig


@dataclass(frozen=True, kw_only=True)
class InstructQConfig(LeaningConfig):
    """Settings of Q-learning regularised by a prior."""

    weight: tuple[NonNegativeFloat, ...] = (0.25,)
    """lambda (paper: 0.25 in Say-Select): one value for all players, or one per player, in order."""
    learning_rate: PositiveFloat = 0.02
    """Learning rate of Q (released code: 0.02, with Adam)."""
    gamma: Share = 1.0
    """Discount per step (released code)."""
    epsilon: Decay = (0.15, 0.15, 1)
    """Share of random actions: start, end, and environment steps in between (released code: 0.15)."""


class InstructQ(Leaning):
    """The agent of InstructRL with Q-learning; arguments of :class:`~hunch_contrib.prior.leaning.Leaning`."""

    config_class: ClassVar[type[Any]] = InstructQConfig
    config: InstructQConfig

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the prior; None if lambda is 0 for all players."""
        return self.prior.evidence if any(self.config.weight) else None

    def weight(self, state: State) -> float:
        """Return lambda for the player whose turn it is in this state."""
        weights = self.config.weight or (0.0,)
        return weights[state.seat % len(weights)]

    def leans(self, state: State) -> bool:
        """Return whether lambda is above 0 for the player of this state."""
        return self.weight(state) > 0

    def leaning(self, state: State) -> tuple[float, ...]:
        """Return the term added to Q for each action: lambda log p(a|s)."""
        return tuple(self.weight(state) * x for x in self.logprobs(state)) if self.leans(state) else ()

    def scores(self, q: FloatArray, leaning: tuple[float, ...]) -> FloatArray:
        """Return Q + lambda log p of each action, shape (number of actions,)."""
        return q + np.array(leaning) if leaning else q


METHOD = Method(
    "instruct-q",
    InstructQ,
    "Q-learning in which an instruction to a language model selects one of many good policies",
    "Hu and Sadigh, Language Instructed Reinforcement Learning for Human-AI Coordination, ICML 2023",
    **LEANING,
)
