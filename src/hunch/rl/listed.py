"""Base class of policies over listed actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from hunch.core import FloatArray, State
from hunch.rl.policy import Decision, Evaluated, Part, Prior


class ListedPolicy(ABC):
    """A policy over the admissible actions of each state: a choice from a list is one token, so T is 1.

    A subclass provides the log-probabilities of all actions, and the values.

    Attributes:
        prior: The prior from which the KL divergence is measured; None for no prior.
    """

    prior: Prior | None = None

    @abstractmethod
    def logprobs(self, states: Sequence[State]) -> Tensor:
        """Return log-probabilities of the actions, shape (n, max. actions), padded with -inf."""

    @abstractmethod
    def judge(self, states: Sequence[State]) -> Tensor:
        """Return the values with gradients, shape (n,)."""

    def both(self, states: Sequence[State]) -> tuple[Tensor, Tensor]:
        """Return :meth:`logprobs` and :meth:`judge`, in one pass where that saves time."""
        return self.logprobs(states), self.judge(states)

    @torch.no_grad()
    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the probabilities of each state's actions, shape (number of actions,) per state."""
        shares = self.logprobs(states).double().exp().cpu().numpy()
        return [row[: len(s.options)] / row.sum() for row, s in zip(shares, states, strict=True)]

    def sample(self, states: Sequence[State], rngs: Sequence[np.random.Generator]) -> list[Decision]:
        """Draw an action in each state with the state's random generator; several states may share one."""
        drawn = []
        for state, shares, rng in zip(states, self.probabilities(states), rngs, strict=True):
            index = int(rng.choice(len(shares), p=shares))
            drawn.append(Decision(state.options[index], (index,), (float(np.log(shares[index])),)))
        return drawn

    def expected(self, states: Sequence[State], decisions: Sequence[Decision]) -> Tensor | None:
        """Return None: ``evaluate`` computes the KL divergence over the whole distribution."""
        return None

    @torch.no_grad()
    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, without gradients; shape (n,)."""
        found: FloatArray = self.judge(states).double().cpu().numpy()
        return found

    def evaluate(
        self,
        states: Sequence[State],
        decisions: Sequence[Decision],
        part: Part = "both",
        pulled: bool = False,
    ) -> Evaluated:
        """Evaluate choices by the current weights; see :meth:`TrainablePolicy.evaluate`."""
        if part == "value":
            values = self.judge(states)[:, None]
            nothing = torch.zeros_like(values)
            return Evaluated(nothing, nothing, values, torch.ones_like(values, dtype=torch.bool))
        if part == "both":
            logprobs, values = self.both(states)
        else:
            logprobs = self.logprobs(states)
            values = logprobs.new_zeros(len(states))
        places = [state.options.index(own.text) for state, own in zip(states, decisions, strict=True)]
        shares = logprobs.exp()
        taken = logprobs.gather(1, torch.tensor(places, device=logprobs.device)[:, None])
        known = logprobs.masked_fill(logprobs == -torch.inf, 0.0)  # so that padding counts 0 instead of nan
        return Evaluated(
            taken,
            -(shares * known).sum(1, keepdim=True),
            values[:, None],
            torch.ones_like(taken, dtype=torch.bool),
            divergence(shares, known, self.prior(states)) if pulled and self.prior else None,
        )


def divergence(shares: Tensor, known: Tensor, expected: Tensor) -> Tensor:
    """Return KL(policy || prior) of each state, shape (n, 1).

    Args:
        shares: Probabilities of the actions, shape (n, max. actions).
        known: Their logarithms, padded with 0.
        expected: Log-probabilities of the prior, padded with -inf; the divergence is 0 in rows of padding.
    """
    expected = expected.to(known)
    given = (expected > -torch.inf).any(1, keepdim=True)
    expected = expected.masked_fill(expected == -torch.inf, 0.0)
    return (shares * (known - expected)).sum(1, keepdim=True) * given
