"""Writes trained weights back into a GGUF file, for llama.cpp.

The file that the model came from lends its metadata (tokenizer, chat template, sizes) and the names and order
of its tensors. Matrices are written as 16-bit floats, vectors as 32-bit floats.

Two architectures store weights in another form than transformers::

    llama    rows of the query and key matrices: llama.cpp rotates neighbours, transformers the two halves
             of a head, so row (half, i) of a head is stored as row (i, half)
    gemma3   weights of norms: transformers multiplies by 1 + w, so 1 + w is stored
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hunch.core import HunchError
from hunch.lm.backends.weights import gguf_package

ARCHITECTURES: Final = ("llama", "qwen2", "gemma3")
"""Architectures whose weights are understood here, by their names in GGUF."""
FILE_TYPE: Final = "general.file_type"
MOSTLY_F16: Final = 1
"""Value of the field FILE_TYPE for 16-bit floats."""
QUANTISED: Final = "general.quantization_version"


def write(network: Any, source: Path, target: Path) -> Path:
    """Write a network's weights into a copy of the GGUF file that it came from.

    Args:
        network: A causal model of the transformers library, without adapters.
        source: The GGUF file.
        target: The file to write; it is there in full or not at all.

    Raises:
        HunchError: for a damaged file, an architecture that is not known here, or weights that do not fit
            the file.
    """
    gguf = gguf_package()
    try:
        reader = gguf.GGUFReader(str(source))
    except Exception as error:  # at a damaged file the package raises whatever it runs into
        raise HunchError(f"{source} cannot be read, so no GGUF file was written.") from error
    architecture = str(reader.fields["general.architecture"].contents())
    if architecture not in ARCHITECTURES:
        raise HunchError(
            f"{source.name} is a model of the architecture {architecture}, whose weights cannot be written "
            f"back into a GGUF file (those of {', '.join(ARCHITECTURES)} can): convert the saved folder with "
            "llama.cpp's convert_hf_to_gguf.py."
        )
    weights = _by_gguf_name(network, architecture, gguf)
    _check_names(weights, reader, source)

    part = target.with_name(f"{target.name}.new")
    writer = gguf.GGUFWriter(str(part), architecture)
    _copy_metadata(writer, reader, gguf)
    for name, shape, dtype in _layouts(reader, weights):
        size = int(np.prod(shape)) * dtype.itemsize
        writer.add_tensor_info(name, shape, dtype, size, raw_dtype=None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for (name, _, dtype), tensor in zip(_layouts(reader, weights), reader.tensors, strict=True):
        if name in weights:
            data = _stored(name, weights[name], architecture, network.config).astype(dtype)
        else:
            data = gguf.dequantize(tensor.data, tensor.tensor_type).astype(dtype)
        if not np.isfinite(data).all():
            writer.close()
            part.unlink()
            raise HunchError(
                f"The weights {name} are too large for 16-bit floats, so no GGUF file was written."
            )
        writer.write_tensor_data(np.ascontiguousarray(data))
    writer.close()
    part.replace(target)
    return target


def _by_gguf_name(network: Any, architecture: str, gguf: Any) -> dict[str, Any]:
    """Return the network's weights by their names in GGUF."""
    [kind] = [own for own, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture]
    names = gguf.get_tensor_name_map(kind, network.config.num_hidden_layers)
    found = {}
    for name, weight in network.named_parameters():  # a head that is tied to the embeddings is not repeated
        stem, _, suffix = name.rpartition(".")
        known = names.get_name(stem)
        if known is None:
            raise HunchError(f"GGUF has no name for the weights {name} of a model of {architecture}.")
        found[f"{known}.{suffix}"] = weight.detach()
    return found


def _check_names(weights: Mapping[str, Any], reader: Any, source: Path) -> None:
    """Refuse a network with weights that the file has no place for.

    Raises:
        HunchError: if there are some.
    """
    places = {tensor.name: tuple(int(size) for size in reversed(tensor.shape)) for tensor in reader.tensors}
    wrong = [name for name, weight in weights.items() if places.get(name) != tuple(weight.shape)]
    if wrong:
        raise HunchError(
            f"{source.name} has no place for {len(wrong)} of the trained weights, such as {wrong[0]}: it is "
            "another model."
        )


def _copy_metadata(writer: Any, reader: Any, gguf: Any) -> None:
    """Copy all fields but those about how the file is quantised."""
    for field in reader.fields.values():
        skipped = field.name.startswith("GGUF.") or field.name in ("general.architecture", QUANTISED)
        if skipped:  # the writer writes the first two itself
            continue
        kind = field.types[0]
        value = MOSTLY_F16 if field.name == FILE_TYPE else field.contents()
        items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, value, kind, sub_type=items)


def _layouts(reader: Any, weights: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...], np.dtype[Any]]]:
    """Yield name, shape (rows first) and number format of each tensor, in the order of the file."""
    for tensor in reader.tensors:
        shape = tuple(int(size) for size in reversed(tensor.shape))
        matrix = len(shape) > 1 and tensor.name in weights
        yield tensor.name, shape, np.dtype(np.float16 if matrix else np.float32)


def _stored(name: str, weight: Any, architecture: str, config: Any) -> NDArray[np.float32]:
    """Return weights in the form in which llama.cpp reads them."""
    data: NDArray[np.float32] = weight.float().cpu().numpy()
    if architecture == "llama" and (".attn_q." in name or ".attn_k." in name):
        heads = config.num_attention_heads if ".attn_q." in name else config.num_key_value_heads
        halves = data.reshape(heads, 2, -1, *data.shape[1:])  # (heads, half, i, ...)
        return halves.swapaxes(1, 2).reshape(data.shape)  # (heads, i, half, ...)
    if architecture == "gemma3" and "norm" in name:
        return data + 1
    return data
