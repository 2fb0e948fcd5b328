"""The protocol between a program and its caller: plain values as tagged JSON, in frames of known length.

Both ends use this file. The caller does not trust what it decodes, so size, depth, number of nodes, types
and decoding time are limited here. Nothing is pickled.

A float, int, str, bool, None or list is written as such; other values are an object with one tag::

    {"t": [...]}  tuple      {"s": [...]}  set      {"d": [[key, value], ...]}  dict
    {"a": ["<f8", [2, 3], "base64 of the bytes in C order"]}  NumPy array
"""

from __future__ import annotations

import base64
import binascii
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

FRAME = 8 * 2**20
"""Maximum size of a frame in bytes."""
NODES = 1_000_000
"""Maximum number of commas and opening brackets in a frame, which bounds the number of values."""
DEPTH = 60
"""Maximum nesting of lists, tuples, sets and dicts."""
BITS = 1024
"""Maximum size of an integer in bits."""
COLLISIONS = 100
"""Maximum number of keys of a dict or set with the same hash; more would make the caller's tables slow."""
_AT_ONCE = 64
"""Keys that are inserted without looking at the clock."""

_SCALARS = frozenset(np.dtype(code).type for code in "?bBhHiIlLqQefd") | {np.str_}
_DTYPES = frozenset(
    np.dtype(code).newbyteorder("<").str for code in ("?", *"bBhHefdFD", "i4", "u4", "i8", "u8")
)


class WireError(ValueError):
    """A value or frame is not allowed."""


def to_tree(value: Any, depth: int = DEPTH) -> Any:
    """Turn a plain value into JSON data; NumPy scalars become Python ones.

    A tuple, set or dict of a subclass, such as a namedtuple or a Counter, becomes a plain one, and a
    frozenset becomes a set.

    Raises:
        WireError: if a value has another type or is too deep, or an integer is too
            long.
    """
    kind = type(value)
    if kind is float or kind is bool or value is None:
        return value
    if kind is str:
        return _text(value)
    if kind is int:
        if value.bit_length() > BITS:
            raise WireError(f"an integer of {value.bit_length()} bits; at most {BITS} may pass")
        return value
    if kind is np.ndarray:
        return {"a": _packed(value)}
    if kind in _SCALARS:
        return to_tree(value.item())
    if depth == 0:
        raise WireError(f"a value nested deeper than {DEPTH}")
    if kind is list:
        return [to_tree(entry, depth - 1) for entry in value]
    if isinstance(value, tuple):
        return {"t": [to_tree(entry, depth - 1) for entry in value]}
    if isinstance(value, set | frozenset):
        return {"s": [to_tree(entry, depth - 1) for entry in value]}
    if isinstance(value, dict):
        return {"d": [[to_tree(key, depth - 1), to_tree(entry, depth - 1)] for key, entry in value.items()]}
    raise WireError(f"a value of type {kind.__name__}; {PLAIN} may pass")


PLAIN = "float, int, str, bool, None, list, tuple, set, dict and NumPy arrays of numbers"


def from_tree(tree: Any, depth: int = DEPTH, *, finite: bool = False, until: float = math.inf) -> Any:
    """Build the value from JSON data.

    Args:
        tree: Decoded JSON.
        depth: Remaining nesting depth.
        finite: True if NaN and infinity are errors, also in arrays.
        until: Time on the monotonic clock at which decoding fails.

    Raises:
        WireError: if the data are not a valid value.
        TimeoutError: if decoding takes too long, such as for a dict with colliding keys.
    """
    kind = type(tree)
    if kind is float:
        if finite and not math.isfinite(tree):
            raise WireError(f"{tree}; values must be finite")
        return tree
    if kind is str:
        return _text(tree)
    if tree is None or kind is int or kind is bool:
        return tree
    if depth == 0:
        raise WireError(f"a value nested deeper than {DEPTH}")
    _check_clock(until)
    if kind is list:
        return [from_tree(entry, depth - 1, finite=finite, until=until) for entry in tree]
    if kind is not dict or len(tree) != 1:
        raise WireError("a malformed value")
    ((tag, content),) = tree.items()
    if type(content) is not list:
        raise WireError("a malformed value")
    if tag == "a":
        return _unpacked(content, finite=finite)
    if tag == "d":
        return _paired(content, depth, finite=finite, until=until)
    entries = [from_tree(entry, depth - 1, finite=finite, until=until) for entry in content]
    if tag == "t":
        return tuple(entries)
    if tag == "s":
        _check_keys(entries)
        return _filled(set(), entries, until)
    raise WireError("a malformed value")


def calls_to_tree(calls: Sequence[Sequence[Any]]) -> Any:
    """Turn the arguments of several calls into JSON data, column by column.

    All arrays of an argument with the same dtype become one text, because arrays cause most of the cost of a
    short call. Only a caller sends such data, so nothing untrusted is decoded in this way.

    Args:
        calls: Arguments of each call.

    Raises:
        WireError: as for :func:`to_tree`.
    """
    if len({len(call) for call in calls}) != 1 or not calls[0]:
        return [to_tree(list(call)) for call in calls]
    return {"columns": [_column(values) for values in zip(*calls, strict=True)]}


def calls_from_tree(tree: Any) -> Iterable[Sequence[Any]]:
    """Return the arguments of each call; no call shares an array with another."""
    if isinstance(tree, list):
        return map(from_tree, tree)
    return zip(*map(_entries_of, tree["columns"]), strict=True)


def _column(values: Sequence[Any]) -> Any:
    alike = all(type(value) is np.ndarray for value in values) and len({value.dtype for value in values}) == 1
    if not alike or sum(value.nbytes for value in values) > FRAME // 2:
        return [to_tree(value) for value in values]
    flat = np.concatenate([value.ravel() for value in values])
    return {"arrays": [_packed(flat), [value.shape for value in values]]}


def _entries_of(column: Any) -> Iterator[Any]:
    if isinstance(column, list):
        yield from map(from_tree, column)
        return
    flat, begin = _unpacked(column["arrays"][0], finite=False), 0
    for shape in column["arrays"][1]:
        end = begin + math.prod(shape)
        yield flat[begin:end].reshape(shape).copy()
        begin = end


def size(tree: Any) -> int:
    """Return a rough estimate of the size of a tree as JSON, in bytes."""
    kind = type(tree)
    if kind is str:
        return len(tree) * (1 if tree.isascii() else 6) + 3
    if kind is int:
        return int(tree.bit_length()) // 3 + 3
    if kind is list:
        return sum(map(size, tree)) + 2
    return sum(map(size, tree.values())) + 6 if kind is dict else 24


def _text(text: str) -> str:
    """Return the text if UTF-8 can represent it; a lone surrogate would fail later, when it is printed."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise WireError("a text with lone surrogates") from None
    return text


def _packed(array: np.ndarray[Any, Any]) -> list[Any]:
    little = array.dtype.newbyteorder("<")
    if little.str not in _DTYPES:
        raise WireError(f"an array of dtype {array.dtype}; {PLAIN} may pass")
    data = np.ascontiguousarray(array, little).tobytes()
    if len(data) > FRAME:
        raise WireError(f"an array of {len(data):,} bytes; at most {FRAME:,} may pass in one message")
    _check_shape(array.shape)
    return [little.str, list(array.shape), base64.b64encode(data).decode("ascii")]


def _unpacked(content: list[Any], *, finite: bool) -> np.ndarray[Any, Any]:
    if [type(part) for part in content] != [str, list, str]:
        raise WireError("a malformed array")
    dtype, shape, data = content
    if dtype not in _DTYPES or len(shape) > 32 or any(type(n) is not int or n < 0 for n in shape):
        raise WireError("a malformed array")
    try:
        array = np.frombuffer(base64.b64decode(data, validate=True), dtype).reshape(shape).copy()
    except (ValueError, OverflowError, binascii.Error):
        raise WireError("a malformed array") from None
    _check_shape(array.shape)
    if finite and array.dtype.kind in "fc" and not np.isfinite(array).all():
        raise WireError("an array with NaN or infinity; values must be finite")
    if array.dtype.kind == "b":
        array = np.asarray(array.view(np.uint8) != 0)  # a byte other than 0 and 1 is no bool
    return array


def _check_shape(shape: tuple[int, ...]) -> None:
    """Without entries an array may have any length for no bytes, until it is turned into lists."""
    if 0 in shape and math.prod(n or 1 for n in shape) > NODES:
        raise WireError(f"an array without entries of shape {shape}")


def _paired(pairs: list[Any], depth: int, *, finite: bool, until: float) -> dict[Any, Any]:
    if any(type(pair) is not list or len(pair) != 2 for pair in pairs):
        raise WireError("a malformed dict")
    keys, values = (
        [from_tree(pair[i], depth - 1, finite=finite, until=until) for pair in pairs] for i in (0, 1)
    )
    _check_keys(keys)
    mapping: dict[Any, Any] = _filled({}, list(zip(keys, values, strict=True)), until)
    return mapping


def _check_keys(entries: list[Any]) -> None:
    """Refuse what cannot be a key, and many equal hashes, which make a table slow: counted without one."""
    if not all(map(_may_be_key, entries)):
        raise WireError("a key or set entry that is no number, text, None or tuple of those")
    if len(entries) > COLLISIONS:
        hashes = np.sort(np.fromiter(map(hash, entries), np.int64, len(entries)))
        if (hashes[COLLISIONS:] == hashes[:-COLLISIONS]).any():
            raise WireError(f"more than {COLLISIONS} keys with the same hash")


def _filled(table: Any, entries: list[Any], until: float) -> Any:
    """Fill a dict or set as long as there is time.

    Different hashes, too, can be chosen so that Python probes its table place by place for each key. A table
    that grows is filled again, but that takes no longer than it took so far: in a larger table, no key has a
    longer way.
    """
    for begin in range(0, len(entries), _AT_ONCE):
        table.update(entries[begin : begin + _AT_ONCE])
        _check_clock(until)
    return table


def _check_clock(until: float) -> None:
    if time.monotonic() > until:
        raise TimeoutError


def _may_be_key(entry: object) -> bool:
    kind = type(entry)
    if kind is tuple:
        return all(map(_may_be_key, _entries(entry)))
    return entry is None or kind in (float, int, str, bool)


def _entries(entry: Any) -> Iterable[object]:
    return entry  # type: ignore[no-any-return]
