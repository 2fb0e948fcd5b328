"""A checksum at the end of a file or a line, by which every changed bit is detected when it is read.

The checksum is the last entry of a JSON object: ``{"step": 3,"checksum":"crc32:5d3a3a7c"}``. Other files have
the same bytes at their end. Contents and checksum are written in one operation. Data without a checksum
were written by hand or by an earlier version, and are not checked.
"""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

_PARTS = (b'"checksum":', b'"crc32:')
"""No single bit changes both, so a damaged checksum is not taken for none."""
_SIZE = len(b',"checksum":"crc32:00000000"}\n')


def seal(data: bytes | memoryview) -> bytes:
    """Return the checksum of data, in the form that is written after the data."""
    return b',%s%s%08x"}\n' % (*_PARTS, crc32(data))


def fits(data: bytes) -> bool:
    """Return whether data end with their checksum."""
    return data[-_SIZE:] == seal(memoryview(data)[:-_SIZE])


def checked(data: bytes) -> bool:
    """Check data that may end with their checksum.

    Returns:
        False if the data have no checksum.

    Raises:
        ValueError: if the checksum does not fit.
    """
    if fits(data):
        return True
    if any(part in data[-_SIZE:] for part in _PARTS):
        raise ValueError("its checksum does not fit its contents")
    return False


def sealed_json(value: dict[str, Any], indent: int | None = None) -> bytes:
    """Return an object as JSON with checksum and line break; without ``indent`` in one line."""
    text = json.dumps(value, indent=indent, separators=None if indent else (",", ":")).encode()
    body = text[:-1].rstrip()  # the checksum closes the object
    return body + seal(body) if value else text + b"\n"


def read_sealed_json(data: bytes) -> Any:
    """Read JSON; if it has a checksum, check and remove it.

    Raises:
        ValueError: if the data are damaged.
    """
    try:
        return json.loads(data[:-_SIZE] + b"}" if checked(data) else data)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
