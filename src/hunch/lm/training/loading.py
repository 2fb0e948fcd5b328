"""Loads a model for training: a causal one, or one with an encoder and a decoder.

Imports torch and transformers, so it is imported where one is made.
"""

from __future__ import annotations

import warnings
from typing import Final, Literal

import torch

from hunch.core import HunchError, HunchWarning, UsageError
from hunch.lm.backends import folders, huggingface
from hunch.lm.backends.huggingface import CausalModel
from hunch.lm.backends.transformer import TransformerModel
from hunch.lm.training.adapters import import_peft
from hunch.lm.training.causal import Causal
from hunch.lm.training.encoder_decoder import EncoderDecoder, EncoderDecoderModel
from hunch.lm.training.model import ALPHA, RANK, Trainable, is_large
from hunch.ranges import PositiveFloat, PositiveInt

ROOM: Final = 64
"""Number of tokens that a model must be able to read beyond its prompts."""


def load(
    name: str,
    *,
    train: Literal["auto", "all", "lora"] = "auto",
    rank: PositiveInt | None = None,
    alpha: PositiveFloat | None = None,
    seed: int = 0,
    context: int | None = None,
    end: str = "",
    device: str | None = None,
    dtype: str = "float32",
    chat: bool = False,
    recompute: bool = False,
) -> Trainable:
    """Load a causal model or T5 of the transformers library for training.

    Args:
        name: Name on the hub, or a folder.
        train: ``all`` or ``lora``; see :class:`Trainable`, also for the options up to ``end``. By default
            ``lora`` for a large model (:attr:`Trainable.large`), else ``all``.
        rank: Rank of the adapters. Default: 8.
        alpha: Scale of the adapters. Default: 16.
        seed: Seed of the adapters.
        context: Maximum number of tokens of a prompt.
        end: The beginning of the tokens that end a written text.
        device: Default: ``"cuda"`` if available, else ``"cpu"``.
        dtype: Number format of the computation.
        chat: Pass text prompts through the chat template of a causal model.
        recompute: Compute the activations again in the backward pass; see :class:`Trainable`.

    Raises:
        UsageError: for a wrong option, such as a rank where all weights are trained, a model of another kind,
            or adapters without peft.
        HunchError: if the model cannot be loaded, or does not support trees of options.
    """
    if train == "lora":
        import_peft()  # before a large model is read
    if train == "all":
        _refuse_rank(name, rank, alpha, "train=all trains all weights")
    if huggingface.kind_of(folder := folders.find(name)) == "encoder-decoder":
        if chat:
            raise UsageError(f"hf:{name} is an encoder-decoder model, so chat=true cannot be used.")
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        read = EncoderDecoderModel(f"hf:{name}", folder, device=device, dtype=dtype)
        trained = _trained_part(read, train, rank, alpha)
        return EncoderDecoder(read, *trained, seed, context, end, recompute)  # type: ignore[arg-type]
    model = huggingface.load(name, device=device, dtype=dtype, prefix_cache=0, chat=chat)
    if not isinstance(model, CausalModel):
        raise UsageError(f"hf:{name} is an encoder; only causal models and T5 can be trained.")
    if model._engine.unfit:
        raise HunchError(f"hf:{name} does not support trees of options, so it cannot be trained.")
    if context is not None and model.context is not None and context + ROOM > model.context:
        raise UsageError(
            f"hf:{name} reads at most {model.context} tokens: set context to at most {model.context - ROOM}."
        )
    return Causal(model, *_trained_part(model, train, rank, alpha), seed, context, end, recompute)


def _trained_part(
    model: TransformerModel,
    train: Literal["auto", "all", "lora"],
    rank: int | None,
    alpha: float | None,
) -> tuple[Literal["all", "lora"], int, float]:
    """Return what is trained, with rank and scale of adapters; warn where its updates would be rounded away.

    Raises:
        UsageError: for a rank or scale without adapters, or a large model without peft.
    """
    millions = f"{model.name} has {model.parameters / 1e6:,.0f} million weights"
    if train == "auto" and is_large(model):
        import_peft(
            f"{millions}, so it is trained by low-rank adapters, which need peft (train=all in its spec "
            "trains all weights)"
        )
        train = "lora"
    elif train == "auto":
        _refuse_rank(model.name, rank, alpha, f"{millions}, and all of them are trained")
        train = "all"
    dtype = model.network.dtype
    if train == "all" and dtype.itemsize < torch.float32.itemsize:
        warnings.warn(
            f"{model.name} is trained in {str(dtype).removeprefix('torch.')}, all weights: a step that "
            "changes a weight by less than a few thousandths of it is rounded away, at a learning rate of "
            "1e-5 nearly all of them. Use train=lora, whose adapters stay in float32, or dtype=float32.",
            HunchWarning,
            stacklevel=3,
        )
    return train, RANK if rank is None else rank, ALPHA if alpha is None else alpha


def _refuse_rank(name: str, rank: int | None, alpha: float | None, why: str) -> None:
    """Refuse the options of adapters where there are none.

    Raises:
        UsageError: if one is given.
    """
    given = next((key for key, value in (("rank", rank), ("alpha", alpha)) if value is not None), "")
    if given:
        raise UsageError(f"{given} is an option of low-rank adapters, but {why}: add train=lora to the spec.")
