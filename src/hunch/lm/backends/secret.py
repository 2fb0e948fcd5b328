"""Finds a key in data from a server, in any common form, and hides it, also in logs."""

from __future__ import annotations

import base64
import html
import logging
import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hunch.core import UsageError

BLANK: Final = "\"'" + "".join(
    map(chr, (*range(33), 0x7F, 0x85, 0xA0, *range(0x2000, 0x2010), 0x2028, 0x2029, 0x2060, 0xFEFF))
)
"""Quotes, white space, control and zero-width characters, which configuration files may add to a key."""
LONG, SHORT = 16, 8
NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)S?$")
"""Names of environment variables that hold keys."""
LIKE_A_KEY = re.compile(
    r"(?<![\w-])(?:sk|gsk|xai|nvapi|pplx|ghp|github_pat|glpat|hf|r8|dapi)[-_](?=[\w-]*\d)(?=[\w-]*[a-zA-Z])"
    r"[\w-]{20,}"
)
"""Texts with the beginnings by which providers mark their keys."""
PIECE = 8
"""Minimum number of successive letters and digits of a key that are recognised as a part of the key."""
LIBRARIES = ("openai", "anthropic", "httpx", "httpcore")
ESCAPE = re.compile(
    r"%([0-9a-f]{2})|\\u([0-9a-f]{4})|(?:\\|0)x([0-9a-f]{2})|&#x([0-9a-f]{1,5});|&#(\d{1,6});|\\[nrtbfv]",
    re.IGNORECASE,
)


def key_in(variable: str) -> str:
    """Return the key in an environment variable, without surrounding quotes and white space."""
    return os.environ.get(variable, "").strip(BLANK)


def key_of(variable: str, file: Path | None = None) -> str:
    """Return the key in an environment variable or in a file; empty if there is none."""
    if file is None:
        return key_in(variable) if variable else ""
    try:
        return file.read_text(encoding="ascii").strip(BLANK)
    except (OSError, UnicodeError):  # its server has ended, or is of a version that asked for none
        return ""


def hidden(key: str, text: str) -> str:
    """Return a text in which a key is replaced by ``[key]``; the whole text if the key is in another form."""
    if not key:
        return text
    text = re.sub("".join(map(_written, key)), "[key]", text, flags=re.IGNORECASE)
    return "[a text with the key]" if holds(key, text) else text


def keys() -> list[str]:
    """Return the values of environment variables that are named like keys, and are long enough for one."""
    keys = (key_in(name) for name in os.environ if NAMES.search(name.upper()))
    return [key for key in keys if len(key) >= SHORT and re.search(r"\d", key) and not _is_path(key)]


def _is_path(value: str) -> bool:
    """Return whether a value names a file, as of a variable for a file with a key; a bare name is none."""
    return os.path.dirname(value) != "" and os.path.exists(value)


def without_keys(text: str) -> str:
    """Return a text without keys: those of the environment in any form, and what looks like one."""
    for key in keys():
        text = hidden(key, text)
    return LIKE_A_KEY.sub("[key]", text)


def refuse_keys(spec: str) -> None:
    """Refuse a text that would be stored with a run if it holds a key.

    Raises:
        UsageError: if it does; the message does not show it.
    """
    if without_keys(spec) != spec:
        raise UsageError(
            "A model is named without a key: put the key into an environment variable such as "
            "OPENAI_API_KEY (another one is named by ?key_env=NAME)."
        )


def holds(key: str, text: str) -> bool:
    """Return whether a text holds a key: plain, escaped, spaced, reversed, as base64 or as hex.

    Placeholders instead of keys, such as ``EMPTY`` or ``not-needed``, are not searched for.
    """
    if len(key) < LONG and (len(key) < SHORT or key.isalpha() or not re.search(r"\d", key)):
        return False
    pieces = set(_pieces(key))
    return any(piece in read for read in (_letters(text), _letters(_unescaped(text))) for piece in pieces)


def _pieces(key: str) -> Iterator[str]:
    """Yield pieces of all forms of a key; whoever repeats half of a long key repeats one of them."""
    for way in (key, key[::-1]):
        data = way.encode(errors="surrogatepass")
        yield from _split(_letters(way), PIECE)
        for form in (data.hex(), data.hex()[::-1]):
            yield from _split(form, 2 * PIECE)
        for before in range(3):  # base64 writes a key in three ways, by its place in a longer text
            coded = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
            inner = _letters(coded[(8 * before + 5) // 6 : len(coded) - 1])
            for form in (inner, inner[::-1]):
                yield from _split(form, 4 * PIECE // 3)


def _split(form: str, size: int) -> Iterator[str]:
    """Yield a text in equal pieces of at least a size, or as one piece if it is shorter."""
    length = len(form) // max(1, len(form) // size)
    return (form[start : start + length] for start in range(0, len(form) - length + 1, length))


def _letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case, so that spaces and colons do not matter."""
    return re.sub(r"[^a-z0-9]+", "", unicodedata.normalize("NFKC", text).lower())


def _unescaped(text: str) -> str:
    """Return a text with the escapes of JSON, URLs, HTML and programs resolved, also if done twice."""

    def sign(match: re.Match[str]) -> str:
        *codes, decimal = match.groups()
        code = next((int(code, 16) for code in codes if code), int(decimal or 32))
        return chr(code) if code < 0x110000 else " "

    return ESCAPE.sub(sign, ESCAPE.sub(sign, text))


def _written(sign: str) -> str:
    """Return a regular expression for the ways to write one character of a key."""
    number = ord(sign)
    plain = "|".join(re.escape(form) for form in (sign, f"\\{sign}", html.escape(sign)))
    return rf"(?:{plain}|%{number:02x}|&#(?:{number}|x{number:x});|\\u{number:04x})"


@dataclass(frozen=True)
class Hiding:
    """A filter of log records, because transport libraries log what a server sends.

    Attributes:
        variable: The environment variable with the key.
        file: The file with the key, in place of a variable.
    """

    variable: str
    file: Path | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Hide the key in a record; an exception is kept as text."""
        key = key_of(self.variable, self.file)
        record.msg, record.args = hidden(key, record.getMessage()), ()
        if record.exc_info:
            record.exc_text = hidden(key, logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


def hide_in_logs(variable: str, file: Path | None = None) -> None:
    """Hide a key in the logs of the client packages; repeated calls do nothing."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(LIBRARIES):
            logging.getLogger(name).addFilter(Hiding(variable, file))
