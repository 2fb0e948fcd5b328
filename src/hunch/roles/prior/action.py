"""The action prior role: p(a|s), a frozen language model's distribution over admissible actions.

A prior proposes C^k(s), k draws from p(a|s). :mod:`hunch.roles.prior.kinds` makes priors from language
models.

Source: Yan et al., "Efficient Reinforcement Learning with Large Language Model Priors", ICLR 2025.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, IntArray, State, UsageError


@dataclass(frozen=True, slots=True)
class Proposal:
    """C^k(s): the candidates that a prior proposes for a state.

    k draws from p(a|s) may repeat an action. ``indices`` are the distinct candidates, ascending, as indices
    of ``state.actions``, and ``weights`` are their shares of the k draws.

    Attributes:
        indices: Shape (m,) with 1 <= m <= k.
        weights: Shape (m,), positive, summing to one.
        fallbacks: Share of draws that named no admissible action; nan if that cannot happen.
    """

    indices: IntArray
    weights: FloatArray
    fallbacks: float = float("nan")

    def __post_init__(self) -> None:
        """Check that there is a candidate, and that the weights are those of draws."""
        shares = np.asarray(self.weights)
        usual = len(self.indices) == len(shares) > 0 and abs(shares.sum() - 1) < _ROUNDING
        if not (usual and shares.min() > 0):
            raise UsageError(
                f"A prior's proposal needs candidates, and a weight for each, which sum to one; it has "
                f"{len(self.indices)} candidates with the weights {shares.tolist()[:_SHOWN]}."
            )


_ROUNDING = 1e-5
_SHOWN = 8


def require_distribution(probabilities: FloatArray, state: State) -> FloatArray:
    """Return a prior's probabilities for a state.

    Raises:
        UsageError: if they are not one finite number from 0 for each action, with the sum one.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.shape != (n := len(state.options),):
        raise UsageError(f"The prior gives {p.size} probabilities for {n} actions.")
    if not (abs(p.sum() - 1) < _ROUNDING and p.min() >= 0):
        raise UsageError(f"The prior's probabilities are no distribution: {p.tolist()[:_SHOWN]}.")
    return probabilities if isinstance(probabilities, np.ndarray) else p


class ActionPrior(Protocol):
    """A frozen distribution p(a|s) over admissible actions: the *action prior* role."""

    @property
    def evidence(self) -> EvidenceLevel | None:
        """Evidence level of the proposals; None if no model is used."""
        ...

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Draw k candidates for each state; ``None`` proposes every action with positive probability.

        All randomness comes from ``rng``: the same generator state gives the same proposals.
        """
        ...


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
    """A prior with an explicit p(a|s); a proposal is k draws from it."""

    def __init__(self, evidence: EvidenceLevel | None) -> None:
        self.evidence = evidence
        self._known: dict[State, FloatArray] = {}

    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return p(a|s) over ``state.actions`` for each state; the model is asked once per state."""
        new = [state for state in dict.fromkeys(states) if state not in self._known]
        if new:
            found = zip(new, self._compute(new), strict=True)
            self._known.update((state, require_distribution(p, state)) for state, p in found)
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
