"""Reads text files as other programs write them: in UTF-8, with or without a mark at their beginning."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

from hunch.core import UsageError


def read_text(path: str | Path) -> str:
    """Return the text of a file in UTF-8, whatever the locale; lines that end in CR LF end in LF then.

    Raises:
        UsageError: if the file is not written in UTF-8.
        OSError: if it cannot be read.
    """
    data = Path(path).expanduser().read_bytes()
    # Without a mark at the beginning, UTF-16 is valid UTF-8 in which every other byte is zero.
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or 0 < len(data) < 3 * data.count(0):
        raise UsageError(f"{path} is written in UTF-16: save it in UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path} is not a text in UTF-8 (see line {line}): save it in UTF-8.") from None
    return text.replace("\r\n", "\n")


def read_lines(path: str | Path) -> list[str]:
    """Return the lines of a file in UTF-8, which end in LF or CR LF and in nothing else.

    ``str.splitlines`` also splits at U+2028, U+0085 and others, which JSON strings may hold.

    Raises:
        UsageError: if the file is not written in UTF-8.
        OSError: if it cannot be read.
    """
    lines = read_text(path).split("\n")
    return lines if lines[-1] else lines[:-1]
