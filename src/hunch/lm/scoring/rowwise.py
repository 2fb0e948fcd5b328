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
    found = [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear | Conv1D)]
    return list({(type(layer), layer.weight.shape): layer for layer in found}.values())


def _rowwise(layer: Any, passes: Sequence[int]) -> bool:
    chance = torch.Generator().manual_seed(0)
    width = layer.in_features if isinstance(layer, torch.nn.Linear) else layer.nx
    rows = torch.randn(max(passes), width, generator=chance).to(layer.weight)
    whole = layer(rows[None])[0]
    orders = [torch.randperm(max(passes), generator=chance)[:size] for size in passes]
    return all(torch.equal(layer(rows[order][None])[0], whole[order]) for order in orders)
