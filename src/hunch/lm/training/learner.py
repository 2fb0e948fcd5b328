"""One update of weights: gradient, a limit of its norm, and a step of each optimiser.

This module imports torch, so import it only where a model is trained.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hunch.core import HunchError


class Learner:
    """The optimisers of some weights, and their common update.

    Args:
        optimisers: One optimiser for each set of weights.
        limited: Weights whose joint gradient is scaled to a norm of at most 1; none by default.
    """

    def __init__(self, *optimisers: torch.optim.Optimizer, limited: Sequence[Tensor] = ()) -> None:
        self.optimisers = optimisers
        self.limited = limited

    @classmethod
    def adam(cls, weights: Sequence[Tensor]) -> Learner:
        """Return Adam for weights with a limited gradient norm; each update gives the learning rate."""
        return cls(torch.optim.Adam(weights, foreach=True), limited=weights)

    def update(self, loss: Tensor, rate: float | None = None) -> float:
        """Make one gradient step on a loss, optionally with another learning rate; return the loss."""
        self.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.step(rate)
        return float(loss.detach())

    def zero_grad(self) -> None:
        """Forget all gradients. Those of several backward passes are then added until :meth:`step`."""
        for optimiser in self.optimisers:
            optimiser.zero_grad()

    def step(self, rate: float | None = None) -> None:
        """Limit the gradient norm, and make one step, optionally with another learning rate.

        Raises:
            HunchError: if the norm is not finite; the weights stay as they were.
        """
        if self.limited:
            norm = torch.nn.utils.clip_grad_norm_(self.limited, 1.0)
            if not torch.isfinite(norm):
                raise HunchError(
                    "The gradient of the loss is not finite, so this update was stopped; the weights and the "
                    "last checkpoint are sound. Use a smaller learning rate, or dtype=float32 in the model's "
                    "spec."
                )
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["lr"] if rate is None else rate
            optimiser.step()

    def state_dict(self) -> list[dict[str, Any]]:
        """Return the state of each optimiser."""
        return [optimiser.state_dict() for optimiser in self.optimisers]

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore what :meth:`state_dict` returned, as a copy, because optimisers change its tensors."""
        for optimiser, saved in zip(self.optimisers, state, strict=True):
            optimiser.load_state_dict(copy.deepcopy(dict(saved)))
