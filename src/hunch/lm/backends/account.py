"""The address and key of a server, and the client that talks to it."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from hunch.core import HunchError, UsageError

BLANK: Final = "\"'" + "".join(
    map(chr, (*range(33), 0x7F, 0x85, 0xA0, *range(0x2000, 0x2010), 0x2028, 0x2029, 0x2060, 0xFEFF))
)
"""Quotes, white space, control and zero-width characters, which settings files may leave around a key."""


def key_in(variable: str) -> str:
    """Return the key in an environment variable, without surrounding quotes and white space."""
    return os.environ.get(variable, "").strip(BLANK)


def _written(sign: str) -> str:
    """Return a regular expression for the ways to write one character of a key."""
    number = ord(sign)
    plain = "|".join(re.escape(form) for form in (sign, f"\\{sign}", html.escape(sign)))
    return rf"(?:{plain}|%{number:02x}|&#(?:{number}|x{number:x});|\\u{number:04x})"


class Account(NamedTuple):
    """The address of a server and the environment variable with its key; the key itself is never stored.

    Attributes:
        sdk: The client package, ``openai`` or ``anthropic``; also the name of the extra that installs it.
        base_url: Address of the service.
        variable: Name of the environment variable with the key; empty if no key is needed.
    """

    sdk: str
    base_url: str
    variable: str = ""

    @property
    def key(self) -> str:
        """The key, read from the environment each time, without surrounding quotes and white space."""
        return key_in(self.variable) if self.variable else ""

    def check_key(self) -> None:
        """Check that the key can be sent. A transport library's own error would show the key.

        Raises:
            UsageError: if it holds anything but visible ASCII characters; the message does not quote the key.
        """
        odd = next((place for place, sign in enumerate(self.key, 1) if not "!" <= sign <= "~"), 0)
        if odd:
            raise UsageError(
                f"The key in {self.variable} has a space or an invalid character at position {odd} of "
                f"{len(self.key)}."
            )

    def hidden(self, text: str) -> str:
        """Return a text without the key, even if the key is escaped as in JSON, a URL or HTML."""
        if not self.key:
            return text
        return re.sub("".join(map(_written, self.key)), "[key]", text, flags=re.IGNORECASE)

    @property
    def host(self) -> str:
        """The server's name and port, for messages."""
        return urlsplit(self.base_url).netloc

    def library(self) -> Any:
        """Import the client package.

        Raises:
            HunchError: if it is missing; the message names the extra to install.
        """
        try:
            return import_module(self.sdk)
        except ImportError as error:
            raise HunchError(
                f"This model needs {error.name or self.sdk}: pip install 'hunch-rl[{self.sdk}]'."
            ) from error

    def connect(self, guard: Callable[[Any], Any]) -> Any:
        """Return a client that does not retry and follows no redirects, which could leak the key.

        Args:
            guard: Takes the client's byte-stream class, and returns a hook to call before a reply is read.
        """
        library = self.library()
        transport = import_module(library.DefaultAsyncHttpxClient.__base__.__module__)
        client = {"openai": "AsyncOpenAI", "anthropic": "AsyncAnthropic"}[self.sdk]
        return getattr(library, client)(
            api_key=self.key or "none",
            base_url=self.base_url,
            max_retries=0,
            timeout=None,
            # Uncompressed, because a short compressed reply may expand to a very long one.
            default_headers={"Accept-Encoding": "identity"},
            http_client=library.DefaultAsyncHttpxClient(
                follow_redirects=False,
                timeout=None,
                event_hooks={"response": [guard(transport.AsyncByteStream)]},
            ),
        )
