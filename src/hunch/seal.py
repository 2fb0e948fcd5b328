"""A checksum at the end of a file or of a line, so that a single changed bit is seen when it is read.

The checksum is the last entry of a JSON object: ``{"step": 3,"checksum":"crc32:5d3a3a7c"}``. Other files have
the same bytes at their end. It is written together with its contents, so no kill can part them. What has none
was written by hand or by an earlier version, and is read unchecked.
"""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

_PARTS = (b'"checksum":', b'"crc32:')
"""No single bit changes both, so a damaged checksum is not taken for none."""
_SIZE = len(b',"checksum":"crc32:00000000"}\n')


def seal(data: bytes | memoryview) -> bytes:
    """Return the checksum of data, as it is written behind them."""
    return b',%s%s%08x"}\n' % (*_PARTS, crc32(data))


def fits(data: bytes) -> bool:
    """Return whether data end with their checksum."""
    return data[-_SIZE:] == seal(memoryview(data)[:-_SIZE])


def checked(data: bytes) -> bool:
    """Check data that may end with their checksum.

    Returns:
        False if they have none.

    Raises:
        ValueError: if the checksum does not fit.
    """
    if fits(data):
        return True
    if any(part in data[-_SIZE:] for part in _PARTS):
        raise ValueError("its checksum does not fit its contents")
    return False


def sealed_json(value: dict[str, Any], indent: int | None = None) -> bytes:
    """Return an object as JSON with its checksum and a line break; without ``indent`` in one line."""
    text = json.dumps(value, indent=indent, separators=None if indent else (",", ":")).encode()
    body = text[:-1].rstrip()  # the checksum closes the object
    return body + seal(body) if value else text + b"\n"


def read_sealed_json(data: bytes) -> Any:
    """Read JSON, and check it if it has a checksum, which is left out.

    Raises:
        ValueError: if it is damaged.
    """
    return json.loads(data[:-_SIZE] + b"}" if checked(data) else data)
