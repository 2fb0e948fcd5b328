"""Policies that act and are trained: the interface that :mod:`hunch.rl.policy_gradient` needs.

A policy decides on an action, and later evaluates the decision under its new weights. A decision has one
log-probability per token: a text that a model wrote has many, a choice from a list has one. All tensors have
shape (n, T), where T is the largest number of tokens, and ``mask`` is True where a decision has a token.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from hunch.core import FloatArray, HunchError, HunchWarning, State, Transition
from hunch.little_memory import at_most_what_is_free, ran_out

if TYPE_CHECKING:
    from torch import Tensor, nn

Part: TypeAlias = Literal["both", "policy", "value"]
Prior: TypeAlias = "Callable[[Sequence[State]], Tensor]"
"""Function that returns log-probabilities of actions, shape (n, max. actions), padded with -inf; rows of
padding leave a state unregularised."""
Computed = TypeVar("Computed")


class Decision(NamedTuple):
    """An action, and what the update needs to evaluate it again.

    Attributes:
        text: The action.
        tokens: Tokens of a written text as they were drawn, because tokenising the text again may differ.
        logprobs: Natural log-probability of each token when it was drawn. Empty if the policy is
            unchanged at the update, which then computes them.
        finished: False if the text was cut at the maximum number of tokens.
    """

    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    finished: bool = True


def taken(decided: dict[int, Decision], t: Transition) -> Decision:
    """Return the decision that led to a transition, and forget it; that of another agent has the text alone.

    Args:
        decided: The latest decision of each stream.
        t: The transition.
    """
    decision = decided.pop(t.stream, None)
    if decision is None or decision.text != t.action:
        return Decision(t.action)
    return decision


class Step(NamedTuple):
    """A transition, and the decision that led to it."""

    transition: Transition
    decision: Decision


class Evaluated(NamedTuple):
    """A policy's outputs for n decisions of at most T tokens, with gradients; 0 where the mask is False.

    Attributes:
        logprobs: Natural log-probability of each token, shape (n, T).
        entropy: Entropy of the distribution of each token in nats, shape (n, T).
        values: Value before each token, shape (n, T).
        mask: True where a decision has a token, shape (n, T).
        kl: KL divergence from the prior at each token in nats, shape (n, T); None if unknown.
        free: Log-probability of each token without the policy's own mask of tokens, shape (n, T), without
            gradients; None if the policy has no such mask.
    """

    logprobs: Tensor
    entropy: Tensor
    values: Tensor
    mask: Tensor
    kl: Tensor | None = None
    free: Tensor | None = None

    @classmethod
    def joined(cls, pieces: Sequence[Evaluated]) -> Evaluated:
        """Return several pieces with different T as one, padded with 0."""
        fields: dict[str, Tensor | None] = {}
        for name in cls._fields:
            tensors = [getattr(piece, name) for piece in pieces]  # (rows of the piece, its T) each
            fields[name] = None if tensors[0] is None else joined(tensors)
        return cls(**fields)  # type: ignore[arg-type]

    @classmethod
    def recorded(cls, decisions: Sequence[Decision], device: Any = "cpu") -> Evaluated:
        """Return the recorded log-probabilities of decisions, with entropy and values of 0."""
        import torch

        rows = [torch.tensor([decision.logprobs], device=device) for decision in decisions]  # (1, tokens)
        logprobs = joined(rows)  # (n, T)
        mask = joined([torch.ones_like(row, dtype=torch.bool) for row in rows])
        entropy = torch.zeros_like(logprobs)
        values = torch.zeros_like(logprobs)
        return cls(logprobs, entropy, values, mask)

    def whole(self) -> Evaluated:
        """Return texts as single actions: sums over tokens, and the value before the first token; T is 1."""
        # log p(text) = sum_t log p(token_t | tokens before)
        logprobs = (self.logprobs * self.mask).sum(1, keepdim=True)  # (n, 1)
        entropy = (self.entropy * self.mask).sum(1, keepdim=True)
        kl = None if self.kl is None else (self.kl * self.mask).sum(1, keepdim=True)
        return Evaluated(logprobs, entropy, values=self.values[:, :1], mask=self.mask[:, :1], kl=kl)


def joined(pieces: Sequence[Tensor]) -> Tensor:
    """Return tensors of shape (n, T) with different T as one, padded with 0."""
    import torch
    from torch.nn.functional import pad

    width = max(piece.shape[1] for piece in pieces)
    return torch.cat([pad(piece, (0, width - piece.shape[1])) for piece in pieces])


class Policy(Protocol):
    """A policy that draws decisions."""

    def sample(self, states: Sequence[State], rngs: Sequence[np.random.Generator]) -> list[Decision]:
        """Draw a decision in each state with the state's random generator; several states may share one."""


class TrainablePolicy(Policy, Protocol):
    """A policy that draws decisions and can be trained."""

    def evaluate(
        self,
        states: Sequence[State],
        decisions: Sequence[Decision],
        part: Part = "both",
        with_kl: bool = False,
    ) -> Evaluated:
        """Evaluate decisions by the current weights.

        Args:
            states: The states.
            decisions: The decision in each state.
            part: Outputs to compute: all, all but the values, or only the values; the others are 0.
            with_kl: Also compute the KL divergence from the prior, if there is one.
        """

    def reference_logprobs(self, states: Sequence[State], decisions: Sequence[Decision]) -> Tensor | None:
        """Return the log-probability of each token under a frozen reference, shape (n, T).

        None if there is no reference, or if ``evaluate`` computes the divergence of the whole distribution.
        """

    def values(self, states: Sequence[State]) -> FloatArray:
        """Return the value of each state, without gradients; shape (n,)."""

    def parameters(self) -> Mapping[str, list[nn.Parameter]]:
        """Return the trained weights by name: those of ``policy``, and those of ``value`` alone."""

    def state_dict(self) -> dict[str, Any]:
        """Return the trained weights, to be saved."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""


_MEMORY = (
    "There is not enough memory for {} steps at once; the last checkpoint is sound. Use a smaller "
    "micro or batch_size, or train=lora, with it dtype=bfloat16, or recompute=true in the model's spec."
)


@contextmanager
def fitting(micro: int, *, large: bool = True) -> Iterator[None]:
    """Turn an error of memory in this block into one that names settings which need less.

    Args:
        micro: Number of steps per pass.
        large: Whether the block may take no more of the machine's memory than is free, so that there is an
            error. Finding out takes a sixth of a millisecond, too long for each step of a small policy.

    Raises:
        HunchError: if memory runs out, that of an accelerator or of the machine.
    """
    try:
        with at_most_what_is_free() if large else nullcontext():
            yield
    except (RuntimeError, MemoryError) as error:
        if not ran_out(error):
            raise
        raise HunchError(_MEMORY.format(micro)) from error


def require_finite(loss: float) -> None:
    """Check the loss of an update before its gradient step, so that the weights stay as they were.

    Raises:
        HunchError: if the loss is infinite or nan.
    """
    if not np.isfinite(loss):
        raise HunchError(f"The loss is {loss}, so this run was stopped; a lower learning_rate may help.")


class Passes:
    """How many steps or texts are computed at once: fewer from where they do not fit into memory.

    Args:
        micro: Steps or texts per pass.

    Attributes:
        micro: The same number, halved each time that a pass did not fit.
    """

    def __init__(self, micro: int) -> None:
        self.micro = micro

    def fitted(self, compute: Callable[[], Computed]) -> Computed:
        """Return what passes of ``micro`` compute; where memory runs out, again with half as many.

        Args:
            compute: Computes everything in passes of at most ``micro``. It is called again from the start, so
                it draws nothing, and sets gradients to zero before it accumulates them.
        """
        asked = self.micro
        while True:
            try:
                computed = compute()
                break
            except (RuntimeError, MemoryError) as error:
                if self.micro == 1 or not ran_out(error):
                    raise
            self._halve()  # outside the handler, whose error holds what the pass had computed
        if self.micro < asked:
            warnings.warn(
                f"{asked} steps at once did not fit into memory. From here on {self.micro} are computed at "
                f"once, which changes results by rounding alone; --micro {self.micro} begins so.",
                HunchWarning,
                stacklevel=2,
            )
        return computed

    def accumulated(self, zero_grad: Callable[[], None], accumulate: Callable[[], Computed]) -> Computed:
        """Return what ``accumulate`` returns, with the gradients that it adds, and no others.

        Args:
            zero_grad: Sets the gradients to zero.
            accumulate: Adds gradients in passes of at most ``micro``. Where memory runs out, it is called
                again with half as many, so it draws nothing.

        Raises:
            HunchError: if memory runs out for one step or text.
        """

        def from_zero() -> Computed:
            zero_grad()
            return accumulate()

        with fitting(self.micro):
            return self.fitted(from_zero)

    def _halve(self) -> None:
        import torch

        self.micro = (self.micro + 1) // 2
        torch.cuda.empty_cache()


def cut(items: Any, size: int) -> Iterator[Any]:
    """Yield pieces of at most ``size`` items."""
    return (items[start : start + size] for start in range(0, len(items), size))
