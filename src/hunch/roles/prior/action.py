"""The action prior role: p(a|s), a frozen language model's distribution over admissible actions.

A prior proposes C^k(s), k draws from p(a|s). :mod:`hunch.roles.prior.kinds` makes priors from language
models (Yan et al., ICLR 2025).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, IntArray, State, UsageError

ROUNDING, SHOWN = 1e-5, 8
"""Tolerance of the sum of weights, and the number of weights that an error message shows."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The candidates C^k(s) that a prior proposes for a state.

    k draws from p(a|s) may repeat an action. ``indices`` are the distinct candidates, ascending, as indices
    of ``state.actions``, and ``weights`` are their shares of the k draws.

    Attributes:
        indices: Shape (m,) with 1 <= m <= k.
        weights: Shape (m,), positive, summing to one.
        fallbacks: Share of draws that named no admissible action; nan if the prior always names one.
    """

    indices: IntArray
    weights: FloatArray
    fallbacks: float = float("nan")

    def __post_init__(self) -> None:
        """Check that there is a candidate, and that the weights are those of draws."""
        shares = np.asarray(self.weights).tolist()  # in every step: of a few numbers, lists are faster
        usual = len(self.indices) == len(shares) > 0 and abs(sum(shares) - 1) < ROUNDING
        if not (usual and min(shares) > 0):
            raise UsageError(
                f"A prior's proposal needs candidates, and a weight for each, which sum to one; it has "
                f"{len(self.indices)} candidates with the weights {shares[:SHOWN]}."
            )


class ActionPrior(Protocol):
    """A frozen distribution p(a|s) over admissible actions: the *action prior* role."""

    @property
    def evidence(self) -> EvidenceLevel | None:
        """Evidence level of the proposals; None if no model is used."""

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Draw k candidates for each state; ``None`` proposes every action with positive probability.

        All randomness comes from ``rng``: the same generator state gives the same proposals.
        """
