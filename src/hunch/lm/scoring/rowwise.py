"""Tests whether the result for a row depends on the other rows that are computed with it.

A layer works on each token separately, but as a matrix product over all tokens of a pass. The last bits of a
product may depend on the number of rows and on the position of the row; that depends on the library and the
processor. If only a few numbers of rows are possible, all can be tested.

This module imports torch and transformers, so import it only where a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.pytorch_utils import Conv1D


def rowwise(network: Any, passes: Sequence[int]) -> bool:
    """Return whether each row of every product has the same bits in passes of all sizes, at every position.

    Args:
        network: The model; one layer of each shape is tested.
        passes: Numbers of rows.
    """
    with torch.inference_mode():
        return all(_rowwise(layer, passes) for layer in products(network))


def products(network: Any) -> list[Any]:
    """Return one linear layer of each shape."""
    by_shape: dict[Any, Any] = {}  # the last layer of each shape
    for layer in network.modules():
        if isinstance(layer, torch.nn.Linear | Conv1D):
            by_shape[type(layer), layer.weight.shape] = layer
    return list(by_shape.values())


def _rowwise(layer: Any, passes: Sequence[int]) -> bool:
    """Compare passes of all sizes, each over rows in a random order, with one pass over all rows."""
    generator = torch.Generator().manual_seed(0)
    width = layer.in_features if isinstance(layer, torch.nn.Linear) else layer.nx
    rows = torch.randn(max(passes), width, generator=generator).to(layer.weight)  # (rows, width)
    together = layer(rows[None])[0]  # (rows, outputs)
    orders = [torch.randperm(max(passes), generator=generator)[:size] for size in passes]
    return all(torch.equal(layer(rows[order][None])[0], together[order]) for order in orders)
