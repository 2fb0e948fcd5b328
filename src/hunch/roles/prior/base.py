"""The action prior role: p(a|s), a frozen language model's distribution over admissible actions.

A prior proposes C^k(s), k draws from p(a|s) (Yan et al., ICLR 2025). :mod:`hunch.roles.prior.kinds` makes
priors from language models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, IntArray, State, UsageError
from hunch.roles.prior.blank import aimless

ROUNDING: Final = 1e-5
"""Tolerance of the sum of weights or probabilities."""
SHOWN: Final = 8
"""Number of weights or probabilities that an error message shows."""
KNOWN: Final = 2**16
"""Number of states whose distributions are kept: more than a replay buffer holds transitions."""


# ---- the role ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proposal:
    """The candidates C^k(s) that a prior proposes for a state.

    k draws from p(a|s) may repeat an action. ``indices`` are the distinct candidates, ascending, as indices
    of ``state.actions``, and ``weights`` are their shares of the k draws.

    Attributes:
        indices: Shape (m,) with 1 <= m <= k.
        weights: Shape (m,), positive, summing to one.
        fallbacks: Share of draws that named no admissible action; nan if the prior always names one.

    Raises:
        UsageError: if there is no candidate, or not one positive weight for each, summing to one.
    """

    indices: IntArray
    weights: FloatArray
    fallbacks: float = float("nan")

    def __post_init__(self) -> None:
        """Check that there is a candidate, and that the weights are those of draws."""
        # This runs in every step of every stream. For a few numbers, lists are faster than NumPy.
        weights = np.asarray(self.weights).tolist()
        if len(weights) == len(self.indices) > 0 and min(weights) > 0 and abs(sum(weights) - 1) < ROUNDING:
            return
        raise UsageError(
            f"A prior's proposal needs candidates, and a weight for each, which sum to one; it has "
            f"{len(self.indices)} candidates with the weights {weights[:SHOWN]}."
        )

    def named(self, n: int) -> FloatArray:
        """Return the share of the draws that named each of n actions, shape (n,).

        A draw that names no admissible action counts for the last one in ``weights``, as in the released
        code of Yan et al., and for none here.
        """
        shares = np.zeros(n)
        shares[self.indices] = self.weights
        if self.fallbacks > 0:  # not for nan
            shares[-1] -= self.fallbacks
            if shares[-1] < ROUNDING:  # rounding; no share of draws is so small
                shares[-1] = 0.0
        return shares


class ActionPrior(Protocol):
    """A frozen distribution p(a|s) over admissible actions: the *action prior* role."""

    @property
    def evidence(self) -> EvidenceLevel | None:
        """Evidence level of the proposals; None if no model is used."""

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Draw k candidates for each state; ``None`` proposes every action with positive probability.

        All randomness comes from ``rng``: the same generator state gives the same proposals.
        """


def read_of(state: State, *, blank: bool, recent: int | None) -> State:
    """Return what a model reads of a state.

    Args:
        state: The state, as the learner sees it.
        blank: Leave out the task and the goals; see :func:`hunch.roles.prior.blank.aimless`.
        recent: Number of past steps to keep, the latest ones; None keeps all.
    """
    if recent is not None:
        kept = state.history[max(0, len(state.history) - recent) :]
        state = replace(state, history=kept)
    return aimless(state) if blank else state


# ---- priors that know their distribution ------------------------------------------------------------------


class DistributionPrior:
    """A prior with an explicit p(a|s); a proposal consists of k draws from this distribution.

    A subclass computes the distributions; those of the latest :data:`KNOWN` states are kept.

    Attributes:
        blank: The model reads neither task nor goals; see :func:`hunch.roles.prior.blank.aimless`.
        recent: Number of past steps that the model reads, at most; None for all that a state holds.
    """

    blank: bool = False
    recent: int | None = None

    def __init__(self, evidence: EvidenceLevel | None) -> None:
        self.evidence = evidence
        self._known: dict[State, FloatArray] = {}

    def _compute(self, states: list[State]) -> list[FloatArray]:
        """Return p(a|s) of each state, shape (number of its actions,)."""
        raise NotImplementedError

    def read(self, state: State) -> State:
        """Return what the model reads of a state."""
        return read_of(state, blank=self.blank, recent=self.recent)

    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return p(a|s) over ``state.actions`` for each state.

        The model gets one request for all states of which it reads the same.

        Raises:
            UsageError: if what a subclass computed is no distribution.
        """
        read = [self.read(state) for state in states]
        new = [state for state in dict.fromkeys(read) if state not in self._known]
        if new:
            computed = self._compute(new)
            if len(computed) != len(new):
                raise UsageError(f"The prior gives {len(computed)} distributions for {len(new)} states.")
            for state, p in zip(new, computed, strict=True):
                self._known[state] = require_distribution(p, state)
        distributions = [self._known[state] for state in read]
        forget(self._known)
        return distributions

    def propose(self, states: Sequence[State], k: int | None, rng: np.random.Generator) -> list[Proposal]:
        """Draw k candidates for each state; see :class:`ActionPrior`."""
        distributions = self.probabilities(states)
        if len(distributions) != len(states):
            raise UsageError(f"The prior gives {len(distributions)} distributions for {len(states)} states.")
        proposals = []
        for state, p in zip(states, distributions, strict=True):
            if len(p) != len(state.options):
                require_distribution(p, state)  # says that the sizes differ
            try:
                proposals.append(draw(p, k, rng))
            except ValueError:
                # A subclass that overrides `probabilities` returned something else, or the sum of numbers
                # of 32 bits is further from one than NumPy allows.
                exact = np.asarray(require_distribution(p, state), dtype=np.float64)
                proposals.append(draw(exact / exact.sum(), k, rng))
        return proposals


class UniformPrior(DistributionPrior):
    """The uninformed prior: all admissible actions are equally likely. Used in every baseline."""

    def __init__(self, evidence: EvidenceLevel | None = None) -> None:
        super().__init__(evidence)

    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return equal probabilities over ``state.actions`` for each state.

        Nothing is kept: 65,536 states would take more memory than a replay buffer, to save a division.
        """
        return self._compute(list(states))

    def _compute(self, states: list[State]) -> list[FloatArray]:
        return [np.full(len(state.options), 1 / len(state.options)) for state in states]


def forget(memory: dict[State, Any]) -> None:
    """Keep what was remembered of the latest :data:`KNOWN` states."""
    while len(memory) > KNOWN:
        del memory[next(iter(memory))]  # the oldest


def draw(probabilities: FloatArray, k: int | None, rng: np.random.Generator) -> Proposal:
    """Draw k candidates with replacement; ``None`` keeps every action with its probability."""
    shares = probabilities if k is None else rng.multinomial(k, probabilities) / k
    indices = np.flatnonzero(shares)
    return Proposal(indices, shares[indices])


def require_distribution(probabilities: FloatArray, state: State) -> FloatArray:
    """Return a prior's probabilities for a state after checking them.

    Raises:
        UsageError: if there is not one finite, non-negative number per action, or their sum is not one.
    """
    try:
        p = np.asarray(probabilities, dtype=np.float64)
    except (ValueError, TypeError):
        raise UsageError(f"The prior's probabilities are not numbers: {probabilities!r}.") from None
    n = len(state.options)
    if p.shape != (n,):
        raise UsageError(f"The prior gives {p.size} probabilities for {n} actions.")
    if not (abs(p.sum() - 1) < ROUNDING and p.min() >= 0):
        raise UsageError(f"The prior's probabilities are no distribution: {p.tolist()[:SHOWN]}.")
    return probabilities if isinstance(probabilities, np.ndarray) else p
