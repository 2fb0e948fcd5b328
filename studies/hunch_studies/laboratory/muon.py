"""Muon, an optimiser for weight matrices, in the precision of the weights.

Torch's own Muon uses bfloat16, which is very slow on processors without hardware support.

Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024; the scale that lets it
use AdamW's learning rate is from Liu et al., "Muon is Scalable for LLM Training", 2025.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import torch
from torch import Tensor

COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)
STEPS: Final = 5


class Muon(torch.optim.Optimizer):
    """Momentum with an orthogonalised update.

    Args:
        parameters: Weight matrices.
        lr: Learning rate, on the scale of AdamW's.
        momentum: Momentum of the mean gradient, with Nesterov's look-ahead.
        weight_decay: Decoupled weight decay, multiplied by the learning rate.
    """

    def __init__(
        self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.01
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Make one optimiser step."""
        for group in self.param_groups:
            for weight in group["params"]:
                mean = self.state[weight].setdefault("mean", torch.zeros_like(weight))
                mean.lerp_(weight.grad, 1 - group["momentum"])
                update = orthogonal(weight.grad.lerp(mean, group["momentum"]))
                scale = 0.2 * max(weight.shape) ** 0.5
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * scale)


def orthogonal(matrix: Tensor) -> Tensor:
    """Return approximately the nearest matrix with all singular values equal to one, by Newton-Schulz."""
    a, b, c = COEFFICIENTS
    x: Tensor = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(STEPS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x
