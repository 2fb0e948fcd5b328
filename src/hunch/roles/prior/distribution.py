"""Action priors with an explicit distribution p(a|s), from which they draw their proposals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, State, UsageError
from hunch.roles.prior.action import ROUNDING, SHOWN, Proposal


def require_distribution(probabilities: FloatArray, state: State) -> FloatArray:
    """Return a prior's probabilities for a state after checking them.

    Raises:
        UsageError: if there is not one finite, non-negative number per action, or their sum is not one.
    """
    try:
        p = np.asarray(probabilities, dtype=np.float64)
    except (ValueError, TypeError):
        raise UsageError(f"The prior's probabilities are not numbers: {probabilities!r}.") from None
    if p.shape != (n := len(state.options),):
        raise UsageError(f"The prior gives {p.size} probabilities for {n} actions.")
    if not (abs(p.sum() - 1) < ROUNDING and p.min() >= 0):
        raise UsageError(f"The prior's probabilities are no distribution: {p.tolist()[:SHOWN]}.")
    return probabilities if isinstance(probabilities, np.ndarray) else p


def draw(probabilities: FloatArray, k: int | None, rng: np.random.Generator) -> Proposal:
    """Draw k candidates with replacement; ``None`` keeps every action with its probability."""
    shares = probabilities if k is None else rng.multinomial(k, probabilities) / k
    indices = np.flatnonzero(shares)
    return Proposal(indices, shares[indices])


def _drawn(p: FloatArray, k: int | None, rng: np.random.Generator, state: State) -> Proposal:
    try:
        return draw(p if len(p) == len(state.options) else require_distribution(p, state), k, rng)
    except ValueError:
        require_distribution(p, state)  # says what is wrong with p
        raise


class DistributionPrior:
    """A prior with an explicit p(a|s); a proposal consists of k draws from this distribution."""

    def __init__(self, evidence: EvidenceLevel | None) -> None:
        self.evidence = evidence
        self._known: dict[State, FloatArray] = {}

    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return p(a|s) over ``state.actions`` for each state; the model gets one request per state."""
        new = [state for state in dict.fromkeys(states) if state not in self._known]
        if new:
            found = self._compute(new)
            if len(found) != len(new):
                raise UsageError(f"The prior gives {len(found)} distributions for {len(new)} states.")
            self._known.update((s, require_distribution(p, s)) for s, p in zip(new, found, strict=True))
        return [self._known[state] for state in states]

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Draw k candidates for each state; see :class:`ActionPrior`."""
        found = zip(self.probabilities(states), states, strict=True)
        return [_drawn(p, k, rng, state) for p, state in found]

    def _compute(self, states: list[State]) -> list[FloatArray]:
        raise NotImplementedError


class UniformPrior(DistributionPrior):
    """The uninformed prior: all admissible actions are equally likely. Used in every baseline."""

    def __init__(self, evidence: EvidenceLevel | None = None) -> None:
        super().__init__(evidence)

    def _compute(self, states: list[State]) -> list[FloatArray]:
        return [np.full(len(state.options), 1 / len(state.options)) for state in states]
