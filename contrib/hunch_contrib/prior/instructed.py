"""A prior that reads an instruction in place of the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hunch.core import FloatArray, State
from hunch.roles.prior.base import ActionPrior, DistributionPrior
from hunch.roles.prior.blank import aimless


class Instructed:
    """A prior that reads an instruction as the task; it is asked once per state.

    Args:
        prior: Any prior. Without explicit probabilities, it is estimated from ``samples`` draws.
        instruction: The instruction; empty for the task itself.
        samples: Number of draws per state for such an estimate.
        floor: Share of the prior spread evenly over all actions, so that none has probability 0.
        seed: Seed of the draws.
    """

    def __init__(self, prior: ActionPrior, instruction: str, samples: int, floor: float, seed: int) -> None:
        self.prior = prior
        self.instruction = instruction
        self.samples = samples
        self.floor = floor
        self.seed = seed
        self._known: dict[State, tuple[float, ...]] = {}

    def __call__(self, states: Sequence[State]) -> list[tuple[float, ...]]:
        """Return log p(a|s) of each state's actions."""
        new = [state for state in dict.fromkeys(states) if state not in self._known]
        read = [self._instructed(state) for state in new]
        for state, p in zip(new, self._probabilities(read), strict=True):
            mixed = (1 - self.floor) * p + self.floor / len(p)  # (actions,)
            self._known[state] = tuple(np.log(mixed + 1e-300).tolist())
        return [self._known[state] for state in states]

    def _instructed(self, state: State) -> State:
        """Return a state with the instruction in place of the task."""
        if not self.instruction:
            return state
        # A prior with the blank prompt would look for the instruction in observations, which repeat the task.
        read = aimless(state) if getattr(self.prior, "blank", False) else state
        return replace(read, task=self.instruction)

    def _probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        if isinstance(self.prior, DistributionPrior):
            return self.prior.probabilities(states)
        probabilities = []
        for state in states:  # one by one, so that samples do not depend on other requests
            (proposal,) = self.prior.propose([state], self.samples, np.random.default_rng(self.seed))
            p = np.zeros(len(state.options))
            p[proposal.indices] = proposal.weights
            probabilities.append(p)
        return probabilities
