"""The header of a GGUF file: what the model is, and how long a whole file is.

It is read without the package ``gguf``, which takes seconds for the words of a tokenizer. Format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian).
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from hunch.core import UsageError

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
NUMBERS: Final = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
"""Format of each type of number."""
TEXT: Final = 8
ARRAY: Final = 9
LONGEST_KEY: Final = 2**16
MOST_KEPT: Final = 4096
"""Numbers of an array that is kept; longer ones, and those of texts, belong to the tokenizer."""
ALIGNMENT: Final = 32
"""Where the file does not say, tensors begin at multiples of so many bytes."""
TOKENS: Final = "tokenizer.ggml.tokens"
KINDS: Final = "tokenizer.ggml.token_type"
CONTROL: Final = (2, 3)
"""Kinds of tokens that no text is read as: the unknown one, and control tokens such as ``<|im_end|>``."""
THOUGHTS: Final = ("<think", "<reason", "<thought", "[THINK", "<|channel")
"""Marks of thoughts in templates of conversations."""
HALF: Final = 2
"""Bytes of a number of 16 bits."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a GGUF file.

    Attributes:
        metadata: Numbers, texts and short arrays of numbers, by key. Of other arrays the length.
        least: Bytes that the file has at least if it is whole: up to the first byte of its last tensor.
        weights: Number of weights, of all tensors.
        largest: Number of weights of the largest tensor.
    """

    metadata: dict[str, Any]
    least: int
    weights: int
    largest: int

    @property
    def has_chat_template(self) -> bool:
        """True if the file says how conversations are written."""
        return bool(self.metadata.get("tokenizer.chat_template"))

    @property
    def thinks(self) -> bool:
        """True if the model may think before it answers: its template has a mark for thoughts."""
        template = str(self.metadata.get("tokenizer.chat_template", ""))
        return any(mark in template for mark in THOUGHTS)

    @property
    def trained_context(self) -> int:
        """Tokens that the model was trained to read; 0 if the file does not say."""
        return int(self._of_model("context_length") or 0)

    @property
    def bytes_per_token(self) -> int:
        """Bytes of keys and values that the model keeps of each token, in 16 bits; 0 if that is not known.

        Models with a sliding window keep less of some layers, so for them it is not known.
        """
        layers, width = self._of_model("block_count"), self._of_model("embedding_length")
        heads = self._of_model("attention.head_count")
        if not layers or not width or not heads or self._of_model("attention.sliding_window"):
            return 0
        of_keys = self._of_model("attention.head_count_kv") or heads
        each = of_keys if isinstance(of_keys, list) else [of_keys] * layers  # heads of each layer
        size = width // (max(heads) if isinstance(heads, list) else heads)
        key = self._of_model("attention.key_length") or size
        value = self._of_model("attention.value_length") or size
        return int(sum(each) * (key + value) * HALF)

    def _of_model(self, name: str) -> Any:
        return self.metadata.get(f"{self.metadata.get('general.architecture')}.{name}")


def header_of(file: Path) -> Header:
    """Return the header of a GGUF file.

    Raises:
        UsageError: if it is no GGUF file, damaged, or only a part of one.
    """
    about = file.stat()
    return _read(file, about.st_size, about.st_mtime_ns)


def control_tokens_of(file: Path) -> tuple[str, ...]:
    """Return the texts of the control tokens of a GGUF file, the longest first.

    Raises:
        UsageError: as :func:`header_of`.
    """
    header_of(file)
    about = file.stat()
    return _control_tokens(file, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=16)
def _control_tokens(file: Path, size: int, changed: int) -> tuple[str, ...]:
    with file.open("rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
        reader = _Reader(data)
        reader.header()
        return tuple(sorted(reader.control_tokens(), key=len, reverse=True))


@lru_cache(maxsize=16)
def _read(file: Path, size: int, changed: int) -> Header:
    with file.open("rb") as source:
        if source.read(len(MAGIC)) != MAGIC:
            raise UsageError(f"{file} is not a GGUF file: it does not begin with 'GGUF'.")
        try:
            with mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
                header = _Reader(data).header()
        except (struct.error, ValueError, OverflowError, UnicodeDecodeError, MemoryError) as error:
            raise UsageError(
                f"{file} is damaged, or only the beginning of a GGUF file: fetch it again."
            ) from error
    if size < header.least:
        raise UsageError(
            f"{file} is only a part of a GGUF file ({size:,} bytes of at least {header.least:,}): fetch it "
            "again."
        )
    return header


class _Reader:
    """Reads a header from its bytes, front to back."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = len(MAGIC)
        self.arrays: dict[str, int] = {}  # where each array of the metadata begins

    def header(self) -> Header:
        version = self.number("<I")
        if version not in VERSIONS:
            raise ValueError(f"version {version}")
        tensors, pairs = self.number("<Q"), self.number("<Q")
        metadata = {}
        for _ in range(pairs):
            key = self.text(LONGEST_KEY)
            kind = self.number("<I")
            if kind == ARRAY:
                self.arrays[key] = self.at
            metadata[key] = self.value(kind)
        last = 0
        weights = largest = 0
        for _ in range(tensors):
            self.text(LONGEST_KEY)
            dimensions = self.number("<I")
            size = math.prod(self.number("<Q") for _ in range(dimensions))
            weights += size
            largest = max(largest, size)
            self.skip(4)  # its type
            last = max(last, self.number("<Q"))
        alignment = int(metadata.get("general.alignment", ALIGNMENT))
        begin = math.ceil(self.at / alignment) * alignment  # of the tensors
        return Header(metadata, begin + last + 1 if tensors else self.at, weights, largest)

    def value(self, kind: int) -> Any:
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == TEXT:
            return self.text()
        if kind != ARRAY:
            raise ValueError(f"type {kind}")
        of, length = self.number("<I"), self.number("<Q")
        if of in NUMBERS and length <= MOST_KEPT:
            return [self.number(NUMBERS[of]) for _ in range(length)]
        if of in NUMBERS:
            self.skip(struct.calcsize(NUMBERS[of]) * length)
        elif of == TEXT:
            for _ in range(length):
                self.skip(self.number("<Q"))
        else:
            raise ValueError(f"an array of type {of}")
        return length

    def control_tokens(self) -> list[str]:
        """Return the texts of control tokens, after the header was read; none if the file names no kinds."""
        if TOKENS not in self.arrays or KINDS not in self.arrays:
            return []
        self.at = self.arrays[KINDS]
        form, count = NUMBERS[self.number("<I")], self.number("<Q")
        kinds = struct.unpack_from(f"<{count}{form[1:]}", self.data, self.at)
        self.at = self.arrays[TOKENS]
        self.skip(12)  # the type of the array, and its length
        control = []
        for kind in kinds:
            length = self.number("<Q")
            begin = self.at
            self.skip(length)
            if kind in CONTROL and length > 1:
                control.append(self.data[begin : self.at].decode())
        return control

    def number(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self, longest: int | None = None) -> str:
        length = self.number("<Q")
        if longest is not None and length > longest:
            raise ValueError("a key is too long")
        begin = self.at
        self.skip(length)
        return self.data[begin : self.at].decode()

    def skip(self, length: int) -> None:
        self.at += length
        if self.at > len(self.data):
            raise ValueError("the file ends")
