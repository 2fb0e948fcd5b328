"""Loads models whose weights are trained, by their specs."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, get_type_hints

from hunch.core import UsageError
from hunch.lm import shelf
from hunch.lm.registry import SCRATCH, backend_of, called, check_options, split
from hunch.ranges import check_value

if TYPE_CHECKING:
    from hunch.lm.training import Trainable


def trainable(spec: str, **options: Any) -> Trainable:
    """Load a causal model or T5 for training, such as ``"hf:<name or folder>?train=lora"``.

    Args:
        spec: As for :func:`load`, with ``train=all`` for all weights or ``train=lora`` for adapters, which
            large models get by default. The kind must be ``hf:``, ``gguf:``, a name of the shelf, one whose
            ``check`` returns a folder, such as ``pocket``, or ``scratch``, for a new small model over words
            (:func:`hunch.lm.training.words.new`).
        **options: Options of :func:`hunch.lm.training.load`; they override those in the spec.

    Raises:
        UsageError: for another kind of model, or a wrong option.
        HunchError: if the model cannot be loaded.
    """
    require_trainable(spec)
    head, written = split(spec)
    kind, _, name = head.partition(":")
    chosen = written | dict(options)
    if head == SCRATCH:
        from hunch.lm.training.words import new as scratch  # loads torch

        check_options(SCRATCH, scratch, chosen)
        new: Trainable = scratch(**chosen)
        new.model.name = spec
        return new
    from hunch.lm.training import load  # loads torch

    if kind == "gguf" and name:
        kind = "hf"  # by transformers: llama.cpp does not train
    elif head in shelf.SHELF:
        kind, name = "hf", str(shelf.file_of(head))
    if kind != "hf":
        loading = {key: chosen.pop(key) for key in list(chosen) if key not in signature(load).parameters}
        name = "" if name else str(called(kind, loading, "check")[1] or "")
    if not name:
        raise UsageError(
            "A model to train must be 'hf:<name or folder>', 'gguf:FILE', a model of 'hunch models' that "
            f"writes, or '{SCRATCH}', not {head!r}."
        )
    check_options(f"{kind} to train", load, chosen)
    declared = get_type_hints(load, include_extras=True)  # with their ranges
    for option, value in chosen.items():
        check_value(f"The option {option} of {head}", value, declared[option])
    trained = load(name, **chosen)
    trained.model.name = spec
    return trained


def require_trainable(spec: str) -> None:
    """Check from a spec that a model has weights to train, unlike one behind a server.

    Raises:
        UsageError: if it has none; the message names the model.
    """
    head, _ = split(spec)
    if head.partition(":")[0] not in ("hf", "gguf", SCRATCH) and backend_of(head).takes_argument:
        raise UsageError(
            f"{head} has no weights to train here: name a model as hf:<name, folder or GGUF file>."
        )


def require_weights(lm: object) -> None:
    """Check that a model given in Python is one that can be trained.

    Raises:
        UsageError: if it is a spec, or a model that only answers; the message says how to load one.
    """
    if hasattr(lm, "restart"):  # every hunch.lm.training.Trainable has it; its module loads torch
        return
    spec = lm if isinstance(lm, str) else getattr(lm, "name", "hf:NAME")
    shown = repr(lm) if isinstance(lm, str) else f"a {type(lm).__name__}"
    raise UsageError(
        f"lm must be a model to train, not {shown}: load it with hunch.lm.trainable({spec!r}), "
        "where the model has weights and writes."
    )
