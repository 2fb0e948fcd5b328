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
    def state_values(self, states: Sequence[State]) -> Tensor:
        """Return the values with gradients, shape (n,)."""

    def logprobs_and_values(self, states: Sequence[State]) -> tuple[Tensor, Tensor]:
        """Return :meth:`logprobs` and :meth:`state_values`, in one pass where that saves time."""
        return self.logprobs(states), self.state_values(states)

    @torch.no_grad()
    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the probabilities of each state's actions, shape (number of actions,) per state."""
        probs = self.logprobs(states).double().exp().cpu().numpy()  # (n, max. actions), 0 for padding
        return [row[: len(state.options)] / row.sum() for row, state in zip(probs, states, strict=True)]

    def sample(
        self, states: Sequence[State], rngs: Sequence[np.random.Generator], temperature: float = 1.0
    ) -> list[Decision]:
        """Draw an action in each state with the state's random generator; several states may share one.

        The probabilities are proportional to ``pi(a) ** (1 / temperature)``; at 0 the likeliest is taken. The
        log-probabilities that are returned are those of pi.
        """
        decisions = []
        for state, probs, rng in zip(states, self.probabilities(states), rngs, strict=True):  # (actions,)
            if temperature == 0:
                index = int(probs.argmax())
            elif temperature == 1:
                index = int(rng.choice(len(probs), p=probs))
            else:
                sharpened = (probs / probs.max()) ** (1 / temperature)
                index = int(rng.choice(len(probs), p=sharpened / sharpened.sum()))
            logprob = float(np.log(probs[index]))
            decisions.append(Decision(state.options[index], (index,), (logprob,)))
        return decisions

    def reference_logprobs(self, states: Sequence[State], decisions: Sequence[Decision]) -> Tensor | None:
        """Return None: ``evaluate`` computes the KL divergence over the whole distribution."""
        return None

    @torch.no_grad()
    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, without gradients; shape (n,)."""
        values: FloatArray = self.state_values(states).double().cpu().numpy()
        return values

    def evaluate(
        self,
        states: Sequence[State],
        decisions: Sequence[Decision],
        part: Part = "both",
        with_kl: bool = False,
    ) -> Evaluated:
        """Evaluate choices by the current weights; see :meth:`TrainablePolicy.evaluate`."""
        if part == "value":
            values = self.state_values(states)[:, None]  # (n, 1)
            zeros = torch.zeros_like(values)
            return Evaluated(zeros, zeros, values, torch.ones_like(values, dtype=torch.bool))
        if part == "both":
            all_logprobs, values = self.logprobs_and_values(states)  # (n, max. actions), (n,)
        else:
            all_logprobs = self.logprobs(states)
            values = all_logprobs.new_zeros(len(states))

        # The order of these lines is that in which gradients are added up, so it decides their last bits.
        probs = all_logprobs.exp()  # (n, max. actions)
        chosen = [state.options.index(d.text) for state, d in zip(states, decisions, strict=True)]  # (n,)
        logprobs = all_logprobs.gather(1, torch.tensor(chosen, device=all_logprobs.device)[:, None])  # (n, 1)

        # H(pi) = - sum over a of pi(a) log pi(a). The 0 in place of -inf makes padding count 0, not nan.
        known = all_logprobs.masked_fill(all_logprobs == -torch.inf, 0.0)
        entropy = -(probs * known).sum(1, keepdim=True)  # (n, 1)

        kl = None
        if with_kl and self.prior is not None:
            kl = divergence(probs, known, self.prior(states))
        mask = torch.ones_like(logprobs, dtype=torch.bool)
        return Evaluated(logprobs, entropy, values[:, None], mask, kl)


def divergence(probs: Tensor, logprobs: Tensor, prior_logprobs: Tensor) -> Tensor:
    """Return KL(pi || prior) = sum over a of pi(a) (log pi(a) - log prior(a)) of each state, shape (n, 1).

    Args:
        probs: Probabilities of the actions, shape (n, max. actions), padded with 0.
        logprobs: Their logarithms, padded with 0.
        prior_logprobs: Those of the prior, padded with -inf; the divergence is 0 in rows of padding alone.
    """
    prior_logprobs = prior_logprobs.to(logprobs)
    with_prior = (prior_logprobs > -torch.inf).any(1, keepdim=True)  # (n, 1)
    prior_logprobs = prior_logprobs.masked_fill(prior_logprobs == -torch.inf, 0.0)
    return (probs * (logprobs - prior_logprobs)).sum(1, keepdim=True) * with_prior
