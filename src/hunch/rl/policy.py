"""Policies that act and are judged: what the update of :mod:`hunch.rl.policy_gradient` asks of a policy.

A policy decides on an action, and later says how likely the decision is now. A decision has one
log-probability per token: a text that a model wrote has many, a choice from a list has one. All tensors have
shape (n, T), where T is the largest number of tokens, and ``mask`` tells which tokens there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from hunch.core import FloatArray, HunchError, State, Transition

if TYPE_CHECKING:
    from torch import Tensor, nn

Part: TypeAlias = Literal["both", "policy", "value"]
Prior: TypeAlias = "Callable[[Sequence[State]], Tensor]"
"""Log-probabilities of the actions of some states, padded with -inf; shape (n, max. actions). A
row of padding alone leaves its state unregularised."""


class Decision(NamedTuple):
    """An action, and what the update needs to judge it again.

    Attributes:
        text: The action.
        tokens: Its tokens as they were drawn, of a text that a model wrote: tokenising it may give others.
        logprobs: Natural log-probability of each token when it was drawn. Empty if the policy that drew it is
            still the current one, which then gives them again.
        finished: False if the text was cut at the maximum number of tokens.
    """

    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    finished: bool = True


class Step(NamedTuple):
    """A transition, and the decision that led to it."""

    transition: Transition
    decision: Decision


class Evaluated(NamedTuple):
    """What a policy says of n decisions of at most T tokens, with gradients; 0 where the mask is False.

    Attributes:
        logprobs: Natural log-probability of each token, shape (n, T).
        entropy: Entropy of the distribution of each token in nats, shape (n, T).
        values: Value before each token, shape (n, T).
        mask: Which tokens there are, shape (n, T).
        kl: Divergence from the prior at each token in nats, shape (n, T); None if it is not known.
        free: Log-probability of each token without the policy's own mask of tokens, shape (n, T), without
            gradients; None if it has none.
    """

    logprobs: Tensor
    entropy: Tensor
    values: Tensor
    mask: Tensor
    kl: Tensor | None = None
    free: Tensor | None = None

    @classmethod
    def joined(cls, pieces: Sequence[Evaluated]) -> Evaluated:
        """Return pieces of varying numbers of tokens as one."""
        known: Any = zip(*pieces, strict=True)
        return cls(*(None if own[0] is None else joined(own) for own in known))  # type: ignore[arg-type]

    @classmethod
    def recorded(cls, decisions: Sequence[Decision], device: Any = "cpu") -> Evaluated:
        """Return the recorded log-probabilities of decisions, with entropy and values of 0."""
        import torch

        rows = [torch.tensor([own.logprobs], device=device) for own in decisions]
        logprobs, mask = joined(rows), joined([torch.ones_like(row, dtype=torch.bool) for row in rows])
        return cls(logprobs, torch.zeros_like(logprobs), torch.zeros_like(logprobs), mask)

    def whole(self) -> Evaluated:
        """Return texts as single actions: sums over their tokens, and the value before the first; T is 1."""
        logprobs, entropy = ((own * self.mask).sum(1, keepdim=True) for own in (self.logprobs, self.entropy))
        kl = None if self.kl is None else (self.kl * self.mask).sum(1, keepdim=True)
        return Evaluated(logprobs, entropy, self.values[:, :1], self.mask[:, :1], kl)


def joined(pieces: Sequence[Tensor]) -> Tensor:
    """Return tensors of shape (n, T) with varying T as one, padded with 0."""
    import torch
    from torch.nn.functional import pad

    width = max(piece.shape[1] for piece in pieces)
    return torch.cat([pad(piece, (0, width - piece.shape[1])) for piece in pieces])


class Policy(Protocol):
    """A policy that acts."""

    def sample(self, states: Sequence[State], rngs: Sequence[np.random.Generator]) -> list[Decision]:
        """Draw a decision in each state with its own generator; several states may share one."""


class TrainablePolicy(Policy, Protocol):
    """A policy that acts and is trained."""

    def evaluate(
        self,
        states: Sequence[State],
        decisions: Sequence[Decision],
        part: Part = "both",
        pulled: bool = False,
    ) -> Evaluated:
        """Judge decisions by the current weights.

        Args:
            states: The states.
            decisions: The decision in each state.
            part: What is needed: all, all but the values, or only the values; the rest is 0.
            pulled: Also compute the divergence from the prior, if there is one.
        """

    def expected(self, states: Sequence[State], decisions: Sequence[Decision]) -> Tensor | None:
        """Return the log-probability of each token under a frozen reference, shape (n, T).

        None if there is no reference, or ``evaluate`` knows the divergence of the whole distribution.
        """

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, without gradients; shape (n,)."""

    def parameters(self) -> Mapping[str, list[nn.Parameter]]:
        """Return the trained weights: those of the ``policy``, and those of the ``value`` only."""

    def state_dict(self) -> dict[str, Any]:
        """Return the trained weights, to be saved."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""


_MEMORY = (
    "The accelerator's memory is too small for {} steps at once; the last checkpoint is sound. Use a smaller "
    "micro, or train=lora or dtype=bfloat16 in the model's spec."
)


@contextmanager
def fitting(micro: int) -> Iterator[None]:
    """Name settings that need less memory where the accelerator has too little.

    Args:
        micro: Number of steps computed at once.

    Raises:
        HunchError: in place of torch's error.
    """
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise HunchError(_MEMORY.format(micro)) from error


def cut(items: Any, size: int) -> Iterator[Any]:
    """Yield pieces of at most ``size`` items."""
    return (items[start : start + size] for start in range(0, len(items), size))
