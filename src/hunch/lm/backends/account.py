"""The address and key of a server, and the client that talks to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from hunch.core import HunchError, UsageError

BLANK: Final = "".join(
    map(chr, (*range(33), 0x7F, 0x85, 0xA0, *range(0x2000, 0x2010), 0x2028, 0x2029, 0x2060, 0xFEFF))
)
"""White space, control and zero-width characters, which settings files may leave around a key."""


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
        """The key, read from the environment each time, without surrounding white space."""
        return os.environ.get(self.variable, "").strip(BLANK) if self.variable else ""

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
