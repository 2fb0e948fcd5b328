"""Which kind of model to train a folder holds: a causal one, or one of an encoder and a decoder.

Imports torch and transformers, so it is imported where one is made.
"""

from __future__ import annotations

from typing import Literal

import torch

from hunch.core import HunchError, UsageError
from hunch.lm.backends import huggingface, weights
from hunch.lm.backends.encoder_decoder import EncoderDecoderModel, TrainableEncoderDecoder
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.backends.trainable import Trainable


def load(
    name: str,
    *,
    train: Literal["all", "lora"] = "all",
    rank: int = 8,
    alpha: float = 16.0,
    seed: int = 0,
    device: str | None = None,
    dtype: str = "float32",
    chat: bool = False,
) -> Trainable:
    """Load a causal model of transformers or a T5 to train; see :class:`Trainable`.

    Args:
        name: The hub's name or a folder.
        train: See :class:`Trainable`; so are rank, alpha and seed.
        rank: Of the adapters.
        alpha: Of the adapters.
        seed: Of the adapters.
        device: By default ``"cuda"`` where there is one, else ``"cpu"``.
        dtype: What it computes with.
        chat: Whether prompts that are texts go through its chat template.

    Raises:
        UsageError: for a wrong option, or a model of another kind.
        HunchError: if the model cannot be had or read, or takes no tree of options.
    """
    if huggingface.kind_of(folder := weights.find(name)) == "encoder-decoder":
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        read = EncoderDecoderModel(f"hf:{name}", folder, device=device, dtype=dtype)
        return TrainableEncoderDecoder(read, train, rank, alpha, seed)
    model = huggingface.load(name, device=device, dtype=dtype, prefix_cache=0, chat=chat)
    if not isinstance(model, CausalModel):
        raise UsageError(f"hf:{name} is an encoder, and only causal models and T5 can be trained.")
    if model._engine.unfit:
        raise HunchError(f"hf:{name} takes no tree of options, and so cannot be trained.")
    return Trainable(model, train, rank, alpha, seed)
