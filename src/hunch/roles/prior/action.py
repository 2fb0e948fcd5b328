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

from hunch.core import EvidenceLevel, FloatArray, IntArray, State


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


class DistributionPrior:
    """A prior with an explicit p(a|s); a proposal is k draws from it."""

    def __init__(self, evidence: EvidenceLevel | None) -> None:
        self.evidence = evidence
        self._known: dict[State, FloatArray] = {}

    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return p(a|s) over ``state.actions`` for each state; the model is asked once per state."""
        new = [state for state in dict.fromkeys(states) if state not in self._known]
        if new:
            self._known.update(zip(new, self._compute(new), strict=True))
        return [self._known[state] for state in states]

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Draw k candidates for each state; see :class:`ActionPrior`."""
        return [draw(p, k, rng) for p in self.probabilities(states)]

    def _compute(self, states: list[State]) -> list[FloatArray]:
        raise NotImplementedError


class UniformPrior(DistributionPrior):
    """The uninformed prior: all admissible actions are equally likely. Used in every baseline."""

    def __init__(self, evidence: EvidenceLevel | None = None) -> None:
        super().__init__(evidence)

    def _compute(self, states: list[State]) -> list[FloatArray]:
        return [np.full(len(state.options), 1 / len(state.options)) for state in states]


def recall(proposals: Sequence[Proposal], references: Sequence[int]) -> float:
    """Return recall@k: the share of states whose reference action is among the candidates."""
    hits = [reference in proposal.indices for proposal, reference in zip(proposals, references, strict=True)]
    return float(np.mean(hits))


def entropy(proposal: Proposal) -> float:
    """Return the entropy of the candidates' weights, in nats."""
    return float(-(proposal.weights * np.log(proposal.weights)).sum())
