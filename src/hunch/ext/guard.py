"""The layer before a server of OpenEnv: who may ask, for what, how much at once, and for how long.

A web page in a browser of this machine reaches 127.0.0.1 too. What it sends names its ``Origin``, and a name
that its owner points to 127.0.0.1 stands in ``Host``. Programs send no ``Origin``.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

Message: TypeAlias = "dict[str, Any]"
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

LARGEST: Final = 1_000_000
"""Bytes of the largest body or message."""
DEEPEST: Final = 32
"""Levels of lists and objects in a session's message."""
BODY: Final = 10.0
"""Seconds in which a body has to arrive."""
PATHS: Final = ("/health", "/schema", "/metadata", "/openapi.json", "/docs", "/redoc")
"""What can be read."""
SOCKET: Final = "/ws"
"""Where sessions are opened."""
MESSAGES: Final = ("reset", "step", "state", "close")
"""The types of a session's messages."""


class Guard:
    """An application that passes on only what a session needs.

    Args:
        application: The server of OpenEnv.
        hosts: Names under which the server may be asked, besides localhost and any IP address.
        origins: Web pages that may use it, such as ``http://localhost:3000``.
        idle: Seconds after which a silent session is closed.
    """

    def __init__(
        self, application: Application, hosts: Collection[str], origins: Collection[str], idle: float
    ) -> None:
        self.application, self.idle = application, idle
        self.hosts = {"localhost", *(host.lower() for host in hosts)}
        self.origins = {origin.lower().rstrip("/") for origin in origins}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            return await self.application(scope, receive, send)
        status, problem = self._refused(scope)
        body = b""
        if not problem and scope["type"] == "http":
            status, problem, body = await _body(receive)
        if problem:
            return await _refuse(scope, send, status, problem)
        if scope["type"] == "http":
            return await self.application(scope, _given(body, receive), send)
        await self.application(scope, self._heard(receive), send)

    def _refused(self, scope: Message) -> tuple[int, str]:
        """Return the status and the reason of a refusal, which is empty if there is none."""
        headers = [(name.lower(), value.decode("latin-1").lower()) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._is_allowed(hosts[0]):
            return 403, "This name of the server is not allowed: name it in --hosts of hunch serve."
        origins = [value.rstrip("/") for name, value in headers if name == b"origin"]
        if not self.origins.issuperset(origins):
            return 403, "Web pages may not use this server: name them in --origins of hunch serve."
        if scope["path"] != SOCKET if scope["type"] == "websocket" else scope["path"] not in PATHS:
            return 404, f"Sessions are opened at {SOCKET}; there are also {', '.join(PATHS)}."
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            return 405, "Only GET is allowed."
        lengths = [value for name, value in headers if name == b"content-length"]
        if any(not value.isdecimal() or len(value) > 9 or int(value) > LARGEST for value in lengths):
            return 413, f"A body may have {LARGEST:,} bytes."
        return 0, ""

    def _is_allowed(self, host: str) -> bool:
        """Return whether a Host is one of ours. An address is: only names can be pointed here by others."""
        name = host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _heard(self, receive: Receive) -> Receive:
        """Return a reception of a session's messages; silence ends it."""

        async def next_message() -> Message:
            try:
                async with asyncio.timeout(self.idle):
                    message = await receive()
            except TimeoutError:
                return {"type": "websocket.disconnect", "code": 1001, "reason": "The session was silent."}
            if message["type"] != "websocket.receive":
                return message
            return {"type": "websocket.receive", "text": _readable(message)}

        return next_message


def _readable(message: Mapping[str, Any]) -> str:
    """Return the text of a session's message, or one that gets an error in its place."""
    text = message.get("text")
    try:
        content = json.loads(text if text is not None else message.get("bytes") or b"")
        json.dumps(content, ensure_ascii=False).encode()  # halves of characters cannot be sent back
    except (ValueError, RecursionError):
        return "not JSON"
    if not isinstance(content, dict) or content.get("type") not in MESSAGES:
        return json.dumps({"type": f"none of {', '.join(MESSAGES)}"})
    if _is_deep(content, DEEPEST):
        return json.dumps({"type": f"data with more than {DEEPEST} levels"})
    if not isinstance(content.get("data", {}), dict):
        return json.dumps({"type": "data must be an object"})
    return json.dumps(content)


def _is_deep(value: Any, levels: int) -> bool:
    """Return whether lists and objects are nested more than ``levels`` deep."""
    if not isinstance(value, list | dict):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deep(entry, levels - 1) for entry in inner)


async def _body(receive: Receive) -> tuple[int, str, bytes]:
    """Read a body: the status and the reason of a refusal, and the bytes."""
    body = b""
    try:
        async with asyncio.timeout(BODY):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > LARGEST:
                    return 413, f"A body may have {LARGEST:,} bytes.", b""
                if not message.get("more_body"):
                    return 0, "", body
    except TimeoutError:
        return 408, f"A body has to arrive within {BODY:g} seconds.", b""


def _given(body: bytes, receive: Receive) -> Receive:
    """Return a reception of a body that was read before."""
    parts = [body]

    async def next_message() -> Message:
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        return await receive()

    return next_message


async def _refuse(scope: Message, send: Send, status: int, problem: str) -> None:
    if scope["type"] == "websocket":  # before it was accepted: uvicorn answers with 403
        return await send({"type": "websocket.close", "code": 1008, "reason": problem})
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{problem}\n".encode()})
