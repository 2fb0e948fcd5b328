"""The control of the similarity prior: dissimilarity to recent actions, without a model."""

from __future__ import annotations

import numpy as np

from hunch.core import FloatArray, State
from hunch.numbers import softmax
from hunch.ranges import PositiveFloat, check_value
from hunch.roles.prior.distribution import DistributionPrior
from hunch.roles.prior.similarity import staleness


class NoveltyPrior(DistributionPrior):
    """A prior that only avoids recent actions: the control of the similarity prior's second term.

    It is the same rule without a model: two actions are similar only if their texts are equal. An
    advantage of the similarity prior over it is due to the embeddings.
    """

    def __init__(self, *, temperature: float = 0.1, repeat: float = 1.0) -> None:
        super().__init__("L0")
        check_value("temperature", temperature, PositiveFloat)
        self.temperature = temperature
        self.repeat = repeat

    def _compute(self, states: list[State]) -> list[FloatArray]:
        return [softmax(-self.repeat * self._staleness(state) / self.temperature) for state in states]

    def _staleness(self, state: State) -> FloatArray:
        past = [action for _, action in state.history]
        alike = np.array([[float(action == earlier) for earlier in past] for action in state.options])
        return staleness(alike) if past else np.zeros(len(state.options))
