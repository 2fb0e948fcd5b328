"""Low-rank adapters: a small trained term added to each frozen linear layer of a network.

Source: Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, ICLR 2022. The term is
(alpha / rank) B A x, with random A and B = 0 at first, so that an untrained adapter changes nothing.

This module imports torch and transformers, so import it only where a model is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D


class Adapted(nn.Module):
    """A frozen linear layer with an adapter."""

    def __init__(self, layer: Any, rank: int, alpha: float, chance: torch.Generator) -> None:
        super().__init__()  # the weights are drawn below, with our own generator
        wide, high = _sizes(layer)
        self.layer, self.scale, self.on = layer, alpha / rank, True
        self.a, self.b = nn.Linear(wide, rank, bias=False), nn.Linear(rank, high, bias=False)
        with torch.no_grad():
            self.a.weight.copy_(torch.randn(rank, wide, generator=chance) / wide**0.5)
            self.b.weight.zero_()
        self.to(layer.weight.device, layer.weight.dtype)

    @property
    def weight(self) -> Any:
        """The weight of the frozen layer; some networks read its type."""
        return self.layer.weight

    def forward(self, x: Tensor) -> Tensor:
        """Return the frozen layer's output plus, while it is on, the adapter's term."""
        out: Tensor = self.layer(x)
        return out + self.scale * self.b(self.a(x)) if self.on else out


def adapt(network: Any, rank: int, alpha: float, seed: int) -> None:
    """Freeze a network, and add an adapter to every linear layer of its body, but not of its head."""
    network.requires_grad_(False)
    chance = torch.Generator().manual_seed(seed)
    head = network.get_output_embeddings()
    for parent in list(network.base_model.modules()):
        for name, layer in list(parent.named_children()):
            product = isinstance(layer, nn.Linear | Conv1D) and layer is not head
            if product and not isinstance(parent, Adapted):
                setattr(parent, name, Adapted(layer, rank, alpha, chance))


@contextmanager
def off(network: Any) -> Iterator[None]:
    """Switch the adapters off within a ``with`` block; the network is then the original one bit for bit."""
    adapters = [layer for layer in network.modules() if isinstance(layer, Adapted)]
    for layer in adapters:
        layer.on = False
    try:
        yield
    finally:
        for layer in adapters:
            layer.on = True


def _sizes(layer: Any) -> tuple[int, int]:
    """Return the input and output sizes of a layer."""
    wide, high = layer.weight.shape
    return (wide, high) if isinstance(layer, Conv1D) else (high, wide)
