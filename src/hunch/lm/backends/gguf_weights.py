"""Reads a GGUF file as a network of the transformers library (``hf:<file>.gguf``).

Such a network can be trained and saved. Quantised weights become float numbers. To run a model, llama.cpp is
far quicker (``gguf:<file>``).
"""

from __future__ import annotations

import copy
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any, Final

from hunch.core import HunchError, UsageError
from hunch.extras import library
from hunch.lm.backends.llama_server import check_file, free_memory
from hunch.lm.backends.weights import brief, libraries, quietly

MARKS: Final = ("quantization_config", "_pre_quantization_dtype")
"""What the transformers library adds to the config of a model that was quantised."""


def package() -> Any:
    """Import and return the package gguf, or raise a UsageError that names the extra to install."""
    return library("gguf", "To read weights from a GGUF file takes the package gguf", "gguf")


def config_of(file: Path) -> Any:
    """Return the config of the model in a file, as the transformers library understands it.

    Raises:
        UsageError: if there is no such file, it is no GGUF file, or the package gguf is missing.
        HunchError: if the transformers library cannot read models of its architecture.
    """
    check_file(file)
    package()
    _, transformers = libraries()
    try:
        with quietly():
            return transformers.AutoConfig.from_pretrained(str(file.parent), gguf_file=file.name)
    except Exception as error:  # transformers raises almost anything for a file that it cannot read
        raise _unreadable(file, error) from error


def read(file: Path, head: str, dtype: Any) -> tuple[Any, Any, Any]:
    """Return the tokenizer and the network in a file, and the report of what the network lacks.

    The network is a plain one, without the marks of a quantised model, so that it can be saved.

    Args:
        file: The GGUF file.
        head: The class of the transformers library that reads it, such as ``"AutoModelForCausalLM"``.
        dtype: Number format of torch.

    Raises:
        UsageError: if the weights would not fit into memory.
        HunchError: if the transformers library cannot read the file.
    """
    _check_room(file)
    torch, transformers = libraries()
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    try:
        with quietly(), redirect_stderr(StringIO()):  # a bar that has no switch
            tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
            network, report = getattr(transformers, head).from_pretrained(
                **source, dtype=dtype, output_loading_info=True
            )
        return tokenizer, _plain(network, torch), report
    except Exception as error:  # as above
        raise _unreadable(file, error) from error


def _plain(network: Any, torch: Any) -> Any:
    """Return the same network, built from its config without the marks; its weights are not copied."""
    config = copy.deepcopy(network.config)
    for mark in MARKS:
        if hasattr(config, mark):
            delattr(config, mark)
    with torch.device("meta"):
        plain = type(network)(config)
    plain.load_state_dict(network.state_dict(), assign=True)
    for name, buffer in network.named_buffers():  # those that no state holds, such as frequencies
        owner, _, own = name.rpartition(".")
        plain.get_submodule(owner)._buffers[own] = buffer
    plain.tie_weights()
    plain.generation_config = network.generation_config
    return plain


def _check_room(file: Path) -> None:
    """Refuse weights that would not fit into memory while they are converted.

    Raises:
        UsageError: if they would not.
    """
    weights = sum(int(tensor.n_elements) for tensor in package().GGUFReader(str(file)).tensors)
    needed = 2 * 4 * weights  # float32, once as they are read and once in the network
    free = free_memory()
    if free and needed > free:
        raise UsageError(
            f"{file.name} has {weights / 1e6:,.0f} million weights, which take {needed / 1e9:.1f} GB of "
            f"memory while they are converted, but {free / 1e9:.1f} GB are free: take a smaller model, or "
            "end other programs."
        )


def _unreadable(file: Path, error: Exception) -> HunchError:
    return HunchError(
        f"The transformers library cannot read {file.name} ({brief(error)}); llama.cpp may run it: "
        f"gguf:{file}."
    )
