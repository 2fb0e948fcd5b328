"""Where a server is, which key it wants, and the client that speaks to it."""

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
"""Quotes, white space, control characters and what takes no room, as files of settings put around a key."""


def key_in(variable: str) -> str:
    """Return the key that an environment variable holds, without what files put around it."""
    return os.environ.get(variable, "").strip(BLANK)


def _written(sign: str) -> str:
    """Return a pattern of the ways in which a character of a key may be written."""
    number = ord(sign)
    plain = "|".join(re.escape(form) for form in (sign, f"\\{sign}", html.escape(sign)))
    return rf"(?:{plain}|%{number:02x}|&#(?:{number}|x{number:x});|\\u{number:04x})"


class Account(NamedTuple):
    """Where a server is and which environment variable holds its key; the key itself is kept nowhere.

    Attributes:
        sdk: The package that speaks to it, ``openai`` or ``anthropic``; also the extra that brings it.
        base_url: Address of the service.
        variable: Name of the environment variable with the key; empty where no key is needed.
    """

    sdk: str
    base_url: str
    variable: str = ""

    @property
    def key(self) -> str:
        """The key, read anew from the environment, without what files put around it."""
        return key_in(self.variable) if self.variable else ""

    def check_key(self) -> None:
        """See that the key can be sent; what transport libraries say of one that cannot be shows it.

        Raises:
            UsageError: if it holds anything but visible ASCII characters; it does not quote the key.
        """
        odd = next((place for place, sign in enumerate(self.key, 1) if not "!" <= sign <= "~"), 0)
        if odd:
            raise UsageError(
                f"The key in {self.variable} has a space or a character that no key has, at place {odd} of "
                f"{len(self.key)}."
            )

    def hidden(self, text: str) -> str:
        """Return a text without the key, also where it is written as JSON, addresses or HTML write it."""
        if not self.key:
            return text
        return re.sub("".join(map(_written, self.key)), "[key]", text, flags=re.IGNORECASE)

    @property
    def host(self) -> str:
        """The server's name and port, for messages."""
        return urlsplit(self.base_url).netloc

    def library(self) -> Any:
        """Import the package that speaks to the server.

        Raises:
            HunchError: naming the extra to install, if it is missing.
        """
        try:
            return import_module(self.sdk)
        except ImportError as error:
            raise HunchError(
                f"This model needs {error.name or self.sdk}: pip install 'hunch-rl[{self.sdk}]'."
            ) from error

    def connect(self, guard: Callable[[Any], Any]) -> Any:
        """Return a client without retries of its own, which follows no redirect with the key in hand.

        Args:
            guard: Makes of the client's class of the bytes of a reply what is called before these are read.
        """
        library = self.library()
        transport = import_module(library.DefaultAsyncHttpxClient.__base__.__module__)
        client = {"openai": "AsyncOpenAI", "anthropic": "AsyncAnthropic"}[self.sdk]
        return getattr(library, client)(
            api_key=self.key or "none",
            base_url=self.base_url,
            max_retries=0,
            timeout=None,
            # A short reply may unpack to a long one, so none is packed.
            default_headers={"Accept-Encoding": "identity"},
            http_client=library.DefaultAsyncHttpxClient(
                follow_redirects=False,
                timeout=None,
                event_hooks={"response": [guard(transport.AsyncByteStream)]},
            ),
        )
