"""Reads folders of model files and GGUF files; :mod:`hunch.lm.backends.folders` finds and identifies them.

A GGUF file becomes a network of the transformers library, which can be trained and saved; its quantised
weights become float numbers. To run a model, llama.cpp is far quicker (``gguf:<file>``).
"""

from __future__ import annotations

import copy
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, Final

from hunch import little_memory
from hunch.core import HunchError, UsageError
from hunch.extras import install, library
from hunch.lm.backends.gguf_header import Header, header_of
from hunch.lm.backends.llama_server import check_file, free_memory
from hunch.text_files import read_lines

CARD = "trained_on.jsonl"
"""Name of the file in a model's folder with one line per training; the revision does not depend on it."""
SUMS = "checksums.sha256"
"""Name of the file with checksums of the other files in a folder, in the format of ``sha256sum``."""
DTYPES = ("float32", "bfloat16", "float16")
_PARSING: Final = threading.RLock()
"""Held while the package gguf is changed for a block."""
MARKS: Final = ("quantization_config", "_pre_quantization_dtype")
"""What the transformers library adds to the config of a model that was quantised."""


def trained_on(folder: Path) -> list[dict[str, Any]]:
    """Return the trainings in a model's card, oldest first; empty without a card.

    Each entry has the name of the corpus, and in ``games`` a pattern of the names of its games
    (:mod:`fnmatch`), empty if there are none.

    Raises:
        HunchError: if the card cannot be read.
    """
    card = folder / CARD
    try:
        return [json.loads(line) for line in read_lines(card)] if card.is_file() else []
    except (OSError, ValueError) as error:
        raise HunchError(f"{card} cannot be read: it should have one line of JSON per training.") from error


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read(folder: Path, head: str, device: str, dtype: str, *, weightless: bool = False) -> tuple[Any, Any]:
    """Return the tokenizer and the network of a folder, the network in evaluation mode.

    Args:
        folder: The model's files, or a GGUF file.
        head: The class of the transformers library that reads it, such as ``"AutoModel"``.
        device: Device of torch.
        dtype: Number format: float32, bfloat16 or float16.
        weightless: Leave the weights on the disk; the network then has shapes and settings only.

    Raises:
        UsageError: for a device or dtype that does not exist here.
        HunchError: if a library is missing, the model is incomplete, or one of its files has changed.
    """
    if dtype not in DTYPES:
        raise UsageError(f"There is no dtype {dtype!r} for models; there are {', '.join(DTYPES)}.")
    torch, transformers = libraries()
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"There is no device {device!r} here to load a model on.") from error
    _check(folder)
    if folder.is_file():
        tokenizer, network, report = _read_gguf(folder, head, getattr(torch, dtype), weightless)
    else:
        try:
            with quietly():
                tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
                if weightless:
                    return tokenizer, _weightless(folder, head, getattr(torch, dtype))
                network, report = getattr(transformers, head).from_pretrained(
                    str(folder), dtype=getattr(torch, dtype), output_loading_info=True
                )
        except Exception as error:  # transformers raises almost anything for a folder that it cannot read
            raise HunchError(
                f"The folder {folder} holds no model that can be loaded ({brief(error)})."
            ) from error
    if weightless:
        return tokenizer, network
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:  # transformers would draw them at random
        raise HunchError(f"The model in {folder} lacks {len(missing)} of its weights, such as {missing[0]}.")
    return tokenizer, network.to(device).eval()


def _weightless(folder: Path, head: str, dtype: Any) -> Any:
    """Return the network of a folder without its weights, with the settings that come with the whole one.

    Raises:
        OSError: if there are no weights.
        SafetensorError: if a file of weights is damaged, or only a part of one.
    """
    from safetensors import safe_open  # an optional package

    _, transformers = libraries()
    network = _of_shapes(head, transformers.AutoConfig.from_pretrained(str(folder)), dtype)
    files = [file for kind in ("safetensors", "bin") for file in folder.glob(f"*.{kind}")]
    if not files:
        raise OSError("it has no file of weights")
    index = folder / "model.safetensors.index.json"
    if index.is_file() and not (folder / "model.safetensors").is_file():  # the library prefers one file
        for part in sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values())):
            if not (folder / part).is_file():
                raise OSError(f"it lacks the file {part}")
    for file in files:
        if file.suffix == ".safetensors":
            with safe_open(file, framework="pt"):
                pass
    if network.can_generate():
        settings = transformers.GenerationConfig
        if (folder / "generation_config.json").is_file():
            network.generation_config = settings.from_pretrained(str(folder))
        else:  # as the library does it
            network.generation_config = settings.from_pretrained(
                str(folder), config_file_name="config.json", _from_model_config=True
            )
    return network


def _of_shapes(head: str, config: Any, dtype: Any) -> Any:
    """Return a network that takes no memory: its weights have shapes and no numbers."""
    torch, transformers = libraries()
    with torch.device("meta"):
        return getattr(transformers, head).from_config(config, dtype=dtype).eval()


def _check(folder: Path) -> None:
    sums = (folder / SUMS).read_text("latin-1") if (folder / SUMS).is_file() else ""
    for digest, _, name in (line.partition("  ") for line in sums.splitlines()):
        if not (folder / name).is_file() or sha256(folder / name) != digest:
            what = f"{folder / name} does not match its checksum in {SUMS}: one of the two is damaged"
            raise HunchError(f"{what}. If you changed the file, delete {SUMS}.")


def libraries() -> tuple[Any, Any]:
    """Import and return torch and transformers.

    Raises:
        HunchError: if either is missing; the message names the extra to install.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise lacks_library(error) from error
    return torch, transformers


def lacks_library(error: ImportError) -> HunchError:
    """Return an error that names the extra that installs the missing library."""
    if little_memory.is_lack_of_memory(error):  # it was found and does not fit
        return HunchError(little_memory.sentence(error))
    return HunchError(f"This model needs {error.name or 'transformers'}: {install('hf')}.")


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress progress bars and loading messages of the transformers library."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def brief(error: Exception) -> str:
    """Return the first line of an error."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


# ---- GGUF files -------------------------------------------------------------------------------------------


def gguf_package() -> Any:
    """Import and return the package gguf, or raise a UsageError that names the extra to install."""
    return library("gguf", "To read weights from a GGUF file takes the package gguf", "gguf")


def gguf_config(file: Path) -> Any:
    """Return the config of the model in a file, as the transformers library understands it.

    It is read once: that library takes seconds for the words of the tokenizer, each time.

    Raises:
        UsageError: if there is no such file, it is no GGUF file, or the package gguf is missing.
        HunchError: if the transformers library cannot read models of its architecture.
    """
    check_file(file)
    gguf_package()
    about = file.stat()
    return copy.deepcopy(_config_in(file, about.st_size, about.st_mtime_ns))


@lru_cache(maxsize=4)
def _config_in(file: Path, size: int, changed: int) -> Any:
    _, transformers = libraries()
    try:
        with quietly(), _parsed_once(file):
            return transformers.AutoConfig.from_pretrained(str(file.parent), gguf_file=file.name)
    except Exception as error:  # transformers raises almost anything for a file that it cannot read
        raise _unreadable(file, error) from error


@contextmanager
def _parsed_once(file: Path) -> Iterator[None]:
    """Let the package gguf parse a file once, in all such blocks until :func:`_read_gguf` ends.

    The transformers library makes a reader for the config, one for the tokenizer and one for the weights, and
    each takes seconds for the words of the tokenizer; it also lists the names of all tensors for each of the
    network's modules.
    """
    package = gguf_package()
    about = file.stat()
    with _PARSING:
        reader, names = package.GGUFReader, package.get_tensor_name_map
        package.GGUFReader = lambda path: _reader_of(str(path), about.st_size, about.st_mtime_ns)
        package.get_tensor_name_map = lru_cache(names)
        try:
            yield
        finally:
            package.GGUFReader, package.get_tensor_name_map = reader, names


@lru_cache(maxsize=1)
def _reader_of(path: str, size: int, changed: int) -> Any:
    return gguf_package().gguf_reader.GGUFReader(path)


def _read_gguf(file: Path, head: str, dtype: Any, weightless: bool = False) -> tuple[Any, Any, Any]:
    """Return the tokenizer and the network in a file, and the report of what the network lacks.

    The network is a plain one, without the marks of a quantised model, so that it can be saved.

    Args:
        file: The GGUF file.
        head: The class of the transformers library that reads it, such as ``"AutoModelForCausalLM"``.
        dtype: Number format of torch.
        weightless: See :func:`read`.

    Raises:
        UsageError: if the weights would not fit into memory.
        HunchError: if the transformers library cannot read the file.
    """
    torch, transformers = libraries()
    _check_room(file, dtype)
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    try:
        with quietly(), redirect_stderr(StringIO()), _parsed_once(file):  # a bar that has no switch
            tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
            if weightless:
                config = _without_marks(gguf_config(file))
                return tokenizer, _of_shapes(head, config, dtype), None
            network, report = getattr(transformers, head).from_pretrained(
                **source, config=gguf_config(file), dtype=dtype, output_loading_info=True
            )
        return tokenizer, _plain(network, torch), report
    except Exception as error:  # as above
        raise _unreadable(file, error) from error
    finally:
        _reader_of.cache_clear()  # it holds an array for each word


def _plain(network: Any, torch: Any) -> Any:
    """Return the same network, built from its config without the marks; its weights are not copied."""
    config = _without_marks(copy.deepcopy(network.config))
    with torch.device("meta"):
        plain = type(network)(config)
    plain.load_state_dict(network.state_dict(), assign=True)
    for name, buffer in network.named_buffers():  # those that no state holds, such as frequencies
        owner, _, buffer_name = name.rpartition(".")
        plain.get_submodule(owner)._buffers[buffer_name] = buffer
    plain.tie_weights()
    plain.generation_config = network.generation_config
    return plain


def _without_marks(config: Any) -> Any:
    """Take from a config what says that the model was quantised, and return it."""
    for mark in MARKS:
        if hasattr(config, mark):
            delattr(config, mark)
    return config


def memory_of(header: Header, dtype: Any) -> int:
    """Return how many bytes a model of the transformers library takes while it is read from a GGUF file.

    Each tensor is converted in float32, which takes two copies of it, and is then kept in the number format
    of the network. So the largest one decides, besides the network itself. Measured: 3.0 bytes per weight of
    Qwen2.5-Coder-1.5B in bfloat16, where this says 3.1.

    Args:
        header: The beginning of the file.
        dtype: Number format of torch.
    """
    return int(dtype.itemsize * header.weights + 2 * 4 * header.largest)


def _check_room(file: Path, dtype: Any) -> None:
    """Refuse weights that would not fit into memory while they are converted.

    Raises:
        UsageError: if they would not.
    """
    header = header_of(file)
    needed = memory_of(header, dtype)
    free = free_memory()
    if free and needed > free:
        fewer = "dtype=bfloat16, " if dtype.itemsize > 2 else ""
        raise UsageError(
            f"{file.name} has {header.weights / 1e6:,.0f} million weights, which take "
            f"{needed / 1e9:.1f} GB of memory while they are converted, but {free / 1e9:.1f} GB are free: "
            f"take {fewer}a smaller model, or end other programs."
        )


def _unreadable(file: Path, error: Exception) -> HunchError:
    return HunchError(
        f"The transformers library cannot read {file.name} ({brief(error)}); llama.cpp may run it: "
        f"gguf:{file}."
    )
