"""One printable form of text that others wrote: servers, models, environments, names of folders.

A terminal obeys control characters: they set its title, clear it, or hide what was printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

_CONTROL = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
_UNPRINTABLE: Final = re.compile(_CONTROL)
_OF_A_STREAM: Final = re.compile(r"(?P<kept>\x1b\[[0-9;]*m|\A\r|\r(?=\n))|" + _CONTROL)
"""Colours and ends of lines go through, and a return at the beginning, which draws a bar again."""


def printable(text: str) -> str:
    r"""Return a text with its control characters as escapes, such as ``\x1b``; line ends and tabs stay.

    Marks that turn the direction of writing, and halves of characters, count as control characters.
    """
    return _UNPRINTABLE.sub(_escape, text)


def printable_values(value: Any) -> Any:
    """Return a copy of lists and dictionaries whose texts are printable, the keys too."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_values(key): printable_values(item) for key, item in value.items()}
    return [printable_values(item) for item in value] if isinstance(value, list | tuple) else value


class PrintableStream:
    """A stream on which control characters appear as escapes; colours go through.

    Args:
        stream: The stream of a terminal or a file; who moves the cursor writes to it as ``direct``.
        without: Called with each text, to remove what nobody may see.
    """

    def __init__(self, stream: Any, without: Callable[[str], str] = str) -> None:
        self.direct = stream
        self.without = without

    def write(self, text: str) -> int:
        """Write a text."""
        self.direct.write(_OF_A_STREAM.sub(_escape_alone, self.without(text)))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.direct, name)


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def _escape_alone(match: re.Match[str]) -> str:
    return match[0] if match["kept"] else _escape(match)
