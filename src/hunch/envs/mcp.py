"""The tools of an MCP server as a text environment (extra ``mcp``; tested with mcp 2.3)."""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Final

from hunch.admitted import require, require_server
from hunch.core import HunchError, UsageError
from hunch.envs.tools import Tool, Tools, ToolsGoneError
from hunch.extras import library
from hunch.ranges import PositiveFloat, PositiveInt

MOST_TOOLS: Final = 128
"""Largest number of tools of a server that an agent is offered."""

PATIENCE: Final = 5.0
"""Seconds in which a server has to answer a ping, after a call that failed."""


class Server:
    """A connection to an MCP server, kept open by a thread of its own.

    Args:
        place: Address of a server (``http://…/mcp``), or the command that starts one.
        seconds: Time limit of the connection and of each call.

    Raises:
        UsageError: if the package mcp is missing, or the command may not be started.
        HunchError: if the server cannot be reached, or is none.
    """

    def __init__(self, place: str, seconds: float) -> None:
        library("mcp", "The tools of an MCP server need mcp", "mcp")
        # A server that prints more than messages is common, and the package logs a traceback for each line.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        self.place = place
        self.seconds = seconds
        self.remote = place.startswith(("http://", "https://"))
        if self.remote:
            require_server(place, "Calls of tools")
        else:
            require(place, f"The environment mcp:{place}")
        self._loop = asyncio.new_event_loop()
        self._closing: asyncio.Event | None = None
        self._session: Any = None
        self._ready: Future[list[dict[str, Any]]] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"mcp {place[:40]}")
        self._thread.start()
        try:
            self.tools = self._ready.result(seconds)
        except LateError:
            self.close()
            raise HunchError(f"The MCP server {place} did not answer within {seconds:g} seconds.") from None

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool, and return its result as text.

        Raises:
            HunchError: if the tool fails or is late.
            ToolsGoneError: if the server is gone.
        """
        if self._session is None:
            raise ToolsGoneError(f"The MCP server {self.place} is gone.")
        asked = asyncio.run_coroutine_threadsafe(self._called(name, dict(arguments)), self._loop)
        try:
            result = asked.result(self.seconds)
        except LateError:
            asked.cancel()
            raise HunchError(f"no result within {self.seconds:g} seconds") from None
        except HunchError:
            raise
        except Exception as error:  # what the package raises differs between its versions
            if self._is_gone():
                raise ToolsGoneError(f"The MCP server {self.place} is gone: {_reason(error)}.") from error
            raise HunchError(f"{type(error).__name__}: {error}") from error
        text = _shown(result)
        if result.get("isError"):
            raise HunchError(text or "the tool failed")
        return text

    def _is_gone(self) -> bool:
        """Return whether the server answers no ping, either; one that is late may be busy."""
        if self._session is None or self._loop.is_closed():
            return True
        asked = asyncio.run_coroutine_threadsafe(self._session.send_ping(), self._loop)
        try:
            asked.result(min(self.seconds, PATIENCE))
        except LateError:
            asked.cancel()
        except Exception as error:  # an answer that refuses pings is an answer
            return not hasattr(error, "error") or "closed" in str(error).lower()
        return False

    def close(self) -> None:
        """End the connection, and the program if one was started."""
        if self._closing is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(5.0)

    async def _called(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self._session.call_tool(name, arguments)
        plain: dict[str, Any] = result.model_dump(by_alias=True)
        return plain

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._connected())
        except BaseException as error:  # it reaches whoever waits for the connection
            if not self._ready.done():
                said = HunchError(f"The MCP server {self.place} cannot be used: {_reason(error)}.")
                self._ready.set_exception(said)
        finally:
            self._session = None
            self._loop.close()

    async def _connected(self) -> None:
        """Connect, list the tools, and stay until the connection is closed."""
        import mcp  # the optional package

        self._closing = asyncio.Event()
        async with AsyncExitStack() as stack:
            streams = await stack.enter_async_context(self._transport())
            session = await stack.enter_async_context(mcp.ClientSession(streams[0], streams[1]))
            await session.initialize()
            listed = await _all_tools(session)
            self._session = session
            self._ready.set_result(listed)
            await self._closing.wait()

    def _transport(self) -> Any:
        """Return the transport to the server; its names differ between versions of the package."""
        import mcp.client.stdio as stdio  # the optional package
        import mcp.client.streamable_http as http  # the optional package

        if self.remote:
            connect = getattr(http, "streamable_http_client", None) or http.streamablehttp_client
            return connect(self.place)
        command, *arguments = shlex.split(self.place)
        return stdio.stdio_client(stdio.StdioServerParameters(command=command, args=arguments))


async def _all_tools(session: Any) -> list[dict[str, Any]]:
    """Return the tools of a server, which may list them page by page, up to the most that are offered."""
    from mcp import types  # the optional package

    tools: list[dict[str, Any]] = []
    page = (await session.list_tools()).model_dump(by_alias=True)
    while True:
        tools += page["tools"]
        cursor = page.get("nextCursor")
        # A page without tools does not bring a server that never ends its list any nearer to the limit.
        if cursor is None or not page["tools"] or len(tools) >= MOST_TOOLS:
            return tools[:MOST_TOOLS]
        asked = types.PaginatedRequestParams(cursor=cursor)
        page = (await session.list_tools(params=asked)).model_dump(by_alias=True)


def _shown(result: Mapping[str, Any]) -> str:
    """Return a tool's result as text: its texts, or else its structured content; what is no text is named."""
    texts = []
    for part in result.get("content", ()):
        kind = str(part.get("type"))
        resource = part.get("resource") or {}
        if kind == "text":
            texts.append(str(part.get("text", "")))
        elif "text" in resource:
            texts.append(str(resource["text"]))
        else:
            texts.append(f"[{kind} {part.get('mimeType') or part.get('uri') or ''}".rstrip() + "]")
    structured = result.get("structuredContent")
    if not texts and structured is not None:
        return json.dumps(structured, ensure_ascii=False)
    return "\n".join(texts)


def _reason(error: BaseException) -> str:
    """Return the innermost reason of an error, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class MCP(Tools):
    """The tools of an MCP server: an action is a call in JSON, any other text the final answer.

    Nothing of an episode is undone at its end: whether a server can be used again from the beginning is its
    own matter, so runs in it may not be repeatable.

    Args:
        place: Address of a server (``http://…/mcp``), or the command that starts one.
        task: The task in words.
        answer: Text that the final answer has to contain, in upper or lower case, for a reward of 1; empty
            for no reward.
        max_steps: Step limit of an episode.
        seconds: Time limit of the connection and of each call.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if the package mcp is missing, the server offers no tools, or there is no task.
        HunchError: if the server cannot be reached.
    """

    metadata: ClassVar[dict[str, Any]] = {**Tools.metadata, "reproducible": False}  # type: ignore[misc]

    def __init__(
        self,
        place: str,
        *,
        task: str = "",
        answer: str = "",
        max_steps: PositiveInt = 16,
        seconds: PositiveFloat = 30.0,
        render_mode: str | None = None,
    ) -> None:
        if not task:
            raise UsageError("The tools of an MCP server come without a task: state one with --env.task.")
        self.server = Server(place, seconds)
        tools = [self._tool(listed) for listed in self.server.tools]
        if not tools:
            self.server.close()
            raise UsageError(f"The MCP server {place} offers no tools.")

        def score(text: str, calls: object) -> float:
            return float(answer.casefold() in text.casefold())

        super().__init__(
            tools,
            task=task,
            score=score if answer else None,
            max_steps=max_steps,
            seconds=seconds
            + PATIENCE
            + 1.0,  # the server's own limit comes first, and its sentence is clearer
            render_mode=render_mode,
        )

    def _tool(self, listed: Mapping[str, Any]) -> Tool:
        name = str(listed["name"])
        schema = listed.get("inputSchema") or {"type": "object", "properties": {}}
        return Tool(
            name,
            str(listed.get("description") or ""),
            schema,
            lambda **arguments: self.server.call(name, arguments),
        )

    def unshare(self, memo: dict[int, Any]) -> None:
        """Share the connection: a server cannot be copied."""
        memo[id(self.server)] = self.server
        memo[id(self.tools)] = self.tools
        super().unshare(memo)

    def close(self) -> None:
        """End the connection."""
        self.server.close()
        super().close()
