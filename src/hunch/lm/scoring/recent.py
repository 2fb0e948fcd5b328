"""A memory limited in bytes, which drops the least recently used values first.

It holds the keys and values of blocks of prompts, and the distributions of the token
that follows a prompt and a written text.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from itertools import takewhile
from typing import Any, Generic, TypeVar

import numpy as np

V = TypeVar("V")


class Recent(Generic[V]):
    """Values by key, limited in total size.

    Attributes:
        limit: Maximum size in bytes.
        size: Size of all values in bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def find(self, key: Hashable) -> V | None:
        """Return a value and mark it as used; None if it is not there."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Store a value, or mark it as used if it is there."""
        if key not in self._values:
            self._values[key] = value, size
            self.size += size
        self._values.move_to_end(key)
        while self.size > self.limit:
            _, (_, oldest_size) = self._values.popitem(last=False)
            self.size -= oldest_size


Block = Sequence[tuple[Any, Any]]
"""Keys and values of some tokens, in one pair or in a pair for each layer."""


class Prefixes(Recent[Block]):
    """Computed blocks of prompts, by their prefixes."""

    def known(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the blocks of the longest prefix that is in the cache."""
        return [self.find(key) for key in takewhile(self.__contains__, keys)]

    def keep(self, keys: Sequence[bytes], blocks: Sequence[Block]) -> None:
        """Store the blocks of one prefix, or mark them as used; the last block is dropped first."""
        for key, block in reversed(list(zip(keys, blocks, strict=True))):
            self.put(key, block, size(block))


def size(block: Block) -> int:
    """Return the size of a block in bytes."""
    return sum(part.nbytes for pair in block for part in pair)


def block_keys(tokens: Sequence[int], length: int) -> list[bytes]:
    """Return a key per block: a hash of all tokens up to its end; the last block may be short."""
    keys: list[bytes] = []
    key = b""
    for start in range(0, len(tokens), length):
        key = hashlib.sha256(key + np.array(tokens[start : start + length], np.int64).tobytes()).digest()
        keys.append(key)
    return keys
