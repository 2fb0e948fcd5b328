"""Messages between a program and its caller: JSON in frames of known length, with limits before parsing."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from hunch.sandbox.wire import BITS, DEPTH, FRAME, NODES, WireError

_DIGITS = len(str(2**BITS)) + 1
_HEADER = struct.Struct("!I")
# A string in JSON, also one that does not end: so it never fails once it has begun, and takes linear time.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_NESTING = 3 * DEPTH + 10
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


def encode(message: object) -> bytes:
    """Return a message as the bytes of a frame, without its length.

    Raises:
        WireError: if the message is larger than ``FRAME`` or has more than ``NODES`` values.
    """
    payload = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(payload) > FRAME:
        raise WireError(f"{len(payload):,} bytes in one message; at most {FRAME:,} may pass")
    return _bounded(payload)


def decode(payload: bytes) -> dict[str, Any]:
    """Parse the bytes of a frame, after checking limits on nodes and integers.

    Raises:
        WireError: if the bytes are not a JSON object within the limits.
    """
    try:
        message = json.loads(_bounded(payload).decode("ascii"), parse_int=_integer)
    except (ValueError, RecursionError) as error:
        if isinstance(error, WireError):
            raise
        raise WireError("a frame that is not JSON") from None
    if type(message) is not dict:
        raise WireError("a frame without a message")
    return message


def framed(payload: bytes) -> bytes:
    """Return the bytes preceded by their length."""
    return _HEADER.pack(len(payload)) + payload


def read_frame(read: Callable[[int], bytes]) -> bytes:
    """Read one frame. ``read(n)`` returns at most n bytes, and none at the end.

    Raises:
        WireError: if the stated length exceeds ``FRAME``.
        EOFError: at the end of the stream, also within a frame.
    """
    (length,) = _HEADER.unpack(_exactly(read, _HEADER.size))
    if length > FRAME:
        raise WireError(f"a frame of {length:,} bytes; at most {FRAME:,} may pass")
    return _exactly(read, length)


def _exactly(read: Callable[[int], bytes], length: int) -> bytes:
    parts: list[bytes] = []
    while length:
        part = read(min(length, 2**16))
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _bounded(payload: bytes) -> bytes:
    """Return the same JSON if its number of values and its nesting are within the limits.

    Both are checked before parsing: a megabyte of brackets would become hundreds of megabytes of lists, or
    exhaust a thread's stack.
    """
    openings = payload.count(b"[") + payload.count(b"{")
    if openings <= _NESTING and payload.count(b",") <= NODES - openings:
        return payload
    bare = np.frombuffer(_STRING.sub(b"", payload), np.uint8)
    steps = _STEPS[bare]
    if np.count_nonzero(bare == ord(",")) + np.count_nonzero(steps == 1) > NODES:
        raise WireError(f"more than {NODES:,} values in one message")
    if np.cumsum(steps, dtype=np.int64).max(initial=0) > _NESTING:
        raise WireError(f"a value nested deeper than {DEPTH}")
    return payload


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS or (value := int(digits)).bit_length() > BITS:
        raise WireError(f"an integer of more than {BITS} bits")
    return value
