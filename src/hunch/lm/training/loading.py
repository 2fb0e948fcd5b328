"""Loads a model for training: a causal one, or one with an encoder and a decoder.

Imports torch and transformers, so it is imported where one is made.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import torch

from hunch.core import HunchError, UsageError
from hunch.lm.backends import folders, huggingface
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.training.adapters import import_peft
from hunch.lm.training.causal import Causal
from hunch.lm.training.model import Trainable

ROOM: Final = 64
"""Number of tokens that a model must be able to read beyond its prompts."""


def load(
    name: str,
    *,
    train: Literal["all", "lora"] = "all",
    rank: int = 8,
    alpha: float = 16.0,
    seed: int = 0,
    context: int | None = None,
    end: str = "",
    device: str | None = None,
    dtype: str = "float32",
    chat: bool = False,
) -> Trainable:
    """Load a causal model or T5 of the transformers library for training.

    Args:
        name: Name on the hub, or a folder.
        train: ``all`` or ``lora``; see :class:`Trainable`, also for the options up to ``end``.
        rank: Rank of the adapters.
        alpha: Scale of the adapters.
        seed: Seed of the adapters.
        context: Maximum number of tokens of a prompt.
        end: The beginning of the tokens that end a written text.
        device: Default: ``"cuda"`` if available, else ``"cpu"``.
        dtype: Number format of the computation.
        chat: Pass text prompts through the model's chat template.

    Raises:
        UsageError: for a wrong option, or a model of another kind.
        HunchError: if the model cannot be loaded, or does not support trees of options.
    """
    if train == "lora":
        import_peft()  # before a large model is read
    settings: Any = (train, rank, alpha, seed, context, end)
    if huggingface.kind_of(folder := folders.find(name)) == "encoder-decoder":
        from hunch.lm.training.encoder_decoder import EncoderDecoder, EncoderDecoderModel

        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        read = EncoderDecoderModel(f"hf:{name}", folder, device=device, dtype=dtype)
        return EncoderDecoder(read, *settings)  # type: ignore[arg-type]
    model = huggingface.load(name, device=device, dtype=dtype, prefix_cache=0, chat=chat)
    if not isinstance(model, CausalModel):
        raise UsageError(f"hf:{name} is an encoder; only causal models and T5 can be trained.")
    if model._engine.unfit:
        raise HunchError(f"hf:{name} does not support trees of options, so it cannot be trained.")
    if context is not None and model.context is not None and context + ROOM > model.context:
        raise UsageError(
            f"hf:{name} reads at most {model.context} tokens: set context to at most {model.context - ROOM}."
        )
    return Causal(model, *settings)
