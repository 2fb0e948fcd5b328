"""The address and key of a server, and the client that talks to it."""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Awaitable, Callable
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

from hunch.core import UsageError
from hunch.extras import library
from hunch.lm.backends import secret

PLAIN: Final = re.compile(
    "host|connection|user-agent|accept|accept-encoding|content-type|content-length|anthropic-version"
)
"""Names of headers that may be sent to any server."""
NEAR: Final = re.compile(r"\.(localhost|localdomain|local|lan|internal|intranet|corp|home|home\.arpa)$")
"""Endings of host names that only exist in private networks."""


class MissingKeyError(UsageError):
    """The environment has no key for a server that needs one; no request was sent."""

    unreached = True


def checked_prices(price_in: Any, price_out: Any) -> tuple[float, float]:
    """Return prices per million tokens.

    Raises:
        UsageError: if a price is negative, infinite or no number.
    """
    for price in (price_in, price_out):
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < math.inf:
            raise UsageError(f"A price per million tokens must be at least 0 and finite, not {price!r}.")
    return float(price_in), float(price_out)


def is_provider(sdk: str, url: str) -> bool:
    """Return whether an address is that of the provider, the only one that gets the provider's key."""
    parts = urlsplit(url)
    return parts.scheme == "https" and f".{parts.hostname}".endswith(f".{sdk}.com")


def is_near(host: str) -> bool:
    """Return whether a host is this machine or in a private network."""
    host = host.removesuffix(".")
    if NEAR.search(host):
        return True
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return "." not in host  # another such name
    return all(not _address(address).is_global for address in addresses)


def _address(text: str) -> Any:
    address = ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


class Account(NamedTuple):
    """The address of a server and where its key is; the key itself is never stored.

    Attributes:
        sdk: The client package, ``openai`` or ``anthropic``; also the name of the extra that installs it.
        base_url: Address of the service.
        variable: Name of the environment variable with the key; empty if no key is needed.
        file: File with the key of the user's own llama.cpp server, in place of a variable.
    """

    sdk: str
    base_url: str
    variable: str = ""
    file: Path | None = None

    @property
    def key(self) -> str:
        """The key, read each time, without surrounding quotes and white space."""
        return secret.key_of(self.variable, self.file)

    @property
    def own_key(self) -> str:
        """The key of the user's own llama.cpp server; empty for other servers, whose key nobody else gets."""
        return "" if self.file is None else self.key

    def check_key(self) -> None:
        """Check that the key can be sent. A transport library's own error would show the key.

        Raises:
            UsageError: if the key has characters other than visible ASCII; the message does not show the key.
        """
        odd = next((place for place, sign in enumerate(self.key, 1) if not "!" <= sign <= "~"), 0)
        if odd:
            raise UsageError(
                f"The key in {self.variable} has a space or an invalid character at position {odd} of "
                f"{len(self.key)}."
            )

    def hidden(self, text: str) -> str:
        """Return a text without the key."""
        return secret.hidden(self.key, text)

    def holds_key(self, text: str) -> bool:
        """Return whether a text contains the key in a form that :func:`secret.holds` detects.

        Answers of the user's own llama.cpp are not searched: no model sees its key, and some list all tokens.
        """
        return self.file is None and secret.holds(self.key, text)

    @property
    def key_source(self) -> str:
        """The source of the key, for messages."""
        if self.variable:
            return f"the key comes from {self.variable}"
        if self.file is not None:
            return f"the key comes from {self.file}"
        variable_of_sdk = f"{self.sdk.upper()}_API_KEY"
        why = f"{variable_of_sdk} goes to {self.sdk}.com only; " if secret.key_in(variable_of_sdk) else ""
        return f"no key was sent: {why}name the variable of this server's key by key_env="

    @property
    def host(self) -> str:
        """The server's host name and port, for messages."""
        return urlsplit(self.base_url).netloc

    def library(self) -> Any:
        """Import the client package, or raise a UsageError that names the extra to install."""
        return library(self.sdk, f"This model needs {self.sdk}", self.sdk)

    def connect(self, guard: Callable[[Any], Any]) -> Any:
        """Return a client that does not retry and follows no redirects, which could leak the key.

        Requests to this machine and to private networks use no proxy, and logs do not show the key.

        Args:
            guard: Takes the client's byte-stream class, and returns a hook to call before a reply is read.
        """
        library = self.library()
        transport = import_module(library.DefaultAsyncHttpxClient.__base__.__module__)
        client = {"openai": "AsyncOpenAI", "anthropic": "AsyncAnthropic"}[self.sdk]
        key = self.key or "none"
        connected = getattr(library, client)(
            api_key=key,
            base_url=self._address(transport),
            max_retries=0,
            timeout=None,
            # Uncompressed, because a short compressed reply may expand to a very long one.
            default_headers={"Accept-Encoding": "identity"},
            http_client=library.DefaultAsyncHttpxClient(
                follow_redirects=False,
                timeout=None,
                mounts=self._without_proxy(),
                event_hooks={
                    "request": [] if is_provider(self.sdk, self.base_url) else [_only_with(key)],
                    "response": [guard(transport.AsyncByteStream)],
                },
            ),
        )
        if self.variable or self.file is not None:
            secret.hide_in_logs(self.variable, self.file)
        return connected

    def _address(self, transport: Any) -> Any:
        """Return the address as the transport library has it.

        Raises:
            UsageError: if it refuses the address.
        """
        try:
            return transport.URL(self.base_url)
        except transport.InvalidURL as error:
            raise UsageError(f"base_url must be an address, not {self.base_url!r}: {error}.") from None

    def _without_proxy(self) -> dict[str, None]:
        """Return the rule of the transport library that a near host is reached directly."""
        host = urlsplit(self.base_url).hostname or ""
        if not getproxies() or not is_near(host):
            return {}
        return {f"all://[{host}]" if ":" in host else f"all://{host}": None}


def _only_with(key: str) -> Callable[[Any], Awaitable[None]]:
    """Return a client hook that keeps only plain headers and those with this key.

    The client packages add others from the environment: organization, project, and headers of one's own.
    """

    async def apply(request: Any) -> None:
        for name, value in list(request.headers.items()):
            if not PLAIN.fullmatch(name.lower()) and key not in value:
                del request.headers[name]

    return apply
