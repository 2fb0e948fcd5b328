"""The tools of an MCP server as a text environment (extra ``mcp``; tested with mcp 2.3)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
import tempfile
import threading
from collections.abc import Collection, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as LateError
from contextlib import AsyncExitStack, suppress
from typing import Any, ClassVar, Final, TypeVar

from hunch.admitted import require, require_server
from hunch.core import HunchError, UsageError
from hunch.envs.tools import Tool, Tools, ToolsGoneError
from hunch.extras import library
from hunch.lm.backends.secret import hidden, key_in, without_keys
from hunch.printable import printable
from hunch.ranges import PositiveFloat, PositiveInt

Answer = TypeVar("Answer")
MOST_TOOLS: Final = 128
"""Largest number of tools of a server that an agent is offered."""

LONGEST_WORDS: Final = 4_000
"""Bytes of the errors of a program of which the last line is shown."""

PATIENCE: Final = 5.0
"""Seconds in which a server has to answer a ping, after a call that failed."""


class Server:
    """A connection to an MCP server, kept open by a thread of its own.

    Args:
        place: Address of a server (``http://…/mcp``), or the command that starts one.
        seconds: Time limit of the connection and of each call.
        key_env: Environment variable with the key of a server at an address; empty for no key.

    Raises:
        UsageError: if the package mcp is missing, the command may not be started, or there is no key.
        HunchError: if the server cannot be reached, or is none.
    """

    def __init__(self, place: str, seconds: float, key_env: str = "") -> None:
        library("mcp", "The tools of an MCP server need mcp", "mcp")
        # A server that prints more than messages is common, and the package logs a traceback for each line.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        self.place = place
        self.seconds = seconds
        self.remote = place.startswith(("http://", "https://"))
        self._key = key_in(key_env) if key_env else ""
        if key_env and not self._key:
            raise UsageError(f"key_env names the environment variable {key_env}, which holds no key.")
        if key_env and not self.remote:
            raise UsageError("key_env is for servers at an address; a program takes no key of ours.")
        self._status = 0  # of the last response of a server at an address
        self._errors: Any = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - a program's stderr
        if self.remote:
            require_server(place, "Calls of tools")
        else:
            require(place, f"The environment mcp:{place}")
        self._loop = asyncio.new_event_loop()
        self._connection: asyncio.Task[Any] | None = None
        self._closing: asyncio.Event | None = None
        self._session: Any = None
        self._ready: Future[list[dict[str, Any]]] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"mcp {place[:40]}")
        self._thread.start()
        try:
            self.tools = self._ready.result(seconds)
        except LateError:
            self.close()
            late = f"The MCP server {place} did not answer within {seconds:g} seconds{self._last_words()}."
            raise HunchError(late) from None
        except BaseException:
            self._errors.close()
            raise

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool, and return its result as text.

        Raises:
            HunchError: if the tool fails or is late.
            ToolsGoneError: if the server is gone.
        """
        if self._session is None:
            raise ToolsGoneError(f"The MCP server {self.place} is gone.")
        try:
            result = self._answer(self._called(name, dict(arguments)), self.seconds)
        except LateError:
            raise HunchError(f"no result within {self.seconds:g} seconds") from None
        except Exception as error:  # what the package raises differs between its versions
            if self._is_gone():
                gone = f"The MCP server {self.place} is gone: {_reason(error)}{self._last_words()}."
                raise ToolsGoneError(hidden(self._key, gone)) from error
            raise HunchError(hidden(self._key, f"{type(error).__name__}: {error}")) from error
        text = hidden(self._key, _shown(result))
        if result.get("isError"):
            raise HunchError(text or "the tool failed")
        return text

    def _is_gone(self) -> bool:
        """Return whether the server answers no ping, either; one that is late may be busy."""
        session = self._session
        if session is None:
            return True

        async def ping() -> None:
            await session.send_ping()

        try:
            self._answer(ping(), min(self.seconds, PATIENCE))
        except LateError:
            return False
        except Exception as error:  # an answer that refuses pings is an answer
            return not hasattr(error, "error") or "closed" in str(error).lower()
        return False

    def _answer(self, question: Coroutine[Any, Any, Answer], seconds: float) -> Answer:
        """Return what a coroutine comes to in the thread of the connection.

        Raises:
            TimeoutError: if it takes longer; it is cancelled there.
            CancelledError: if the connection has ended.
        """
        limited = asyncio.wait_for(question, seconds)
        try:
            asked = asyncio.run_coroutine_threadsafe(limited, self._loop)
        except RuntimeError:  # the loop has ended
            limited.close()
            question.close()
            raise CancelledError from None
        return asked.result(seconds + PATIENCE)

    def close(self) -> None:
        """End the connection, and the program if one was started."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._end)
        self._thread.join(5.0)

    def _end(self) -> None:
        """End the connection in its thread; one that is not there yet is given up."""
        if self._connection is None or self._closing is None:
            return
        if self._ready.done():
            self._closing.set()
        else:
            self._connection.cancel()

    def _last_words(self) -> str:
        """Return the last line that a program printed as an error, for a message; empty without one."""
        try:
            self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, self._errors.tell() - LONGEST_WORDS))
            lines = [line for line in self._errors.read().splitlines() if line.strip()]
        except (OSError, ValueError):  # a full disk, or a file that is closed
            return ""
        return f" (it printed: {printable(without_keys(lines[-1].strip()[:200]))})" if lines else ""

    async def _called(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self._session.call_tool(name, arguments)
        plain: dict[str, Any] = result.model_dump(by_alias=True)
        return plain

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._connected())
        except BaseException as error:  # it reaches whoever waits for the connection
            if not self._ready.done():
                self._ready.set_exception(self._refused(error))
        finally:
            self._session = None
            self._loop.run_until_complete(_cancel(asyncio.all_tasks(self._loop)))
            self._loop.close()

    def _refused(self, error: BaseException) -> HunchError:
        """Return an error that says why there is no connection."""
        if self._status in (401, 403):
            key = "it refuses the key of key_env" if self._key else "name the variable of its key by key_env"
            return HunchError(
                f"The MCP server {self.place} asks for authorization (status {self._status}): {key}."
            )
        status = f", status {self._status}" if self._status >= 400 else ""
        said = f"The MCP server {self.place} cannot be used: {_reason(error)}{status}{self._last_words()}."
        return HunchError(hidden(self._key, said))

    async def _connected(self) -> None:
        """Connect, list the tools, and stay until the connection is closed."""
        import mcp  # the optional package

        self._connection = asyncio.current_task()
        self._closing = asyncio.Event()
        async with AsyncExitStack() as stack:
            streams = await stack.enter_async_context(await self._transport(stack))
            session = await stack.enter_async_context(mcp.ClientSession(streams[0], streams[1]))
            await session.initialize()
            listed = await _all_tools(session)
            self._session = session
            self._ready.set_result(listed)
            await self._closing.wait()

    async def _transport(self, stack: AsyncExitStack) -> Any:
        """Return the transport to the server."""
        import mcp.client.stdio as stdio  # the optional package
        import mcp.client.streamable_http as http  # the optional package

        if not self.remote:
            command, *arguments = shlex.split(self.place)
            program = stdio.StdioServerParameters(command=command, args=arguments)
            return stdio.stdio_client(program, self._errors)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else None
        client = await stack.enter_async_context(http.create_mcp_http_client(headers=headers))

        async def note_status(response: Any) -> None:
            self._status = response.status_code

        client.event_hooks = {"response": [note_status]}
        return http.streamable_http_client(self.place, http_client=client)


async def _cancel(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks, so that whoever waits for their answers is told that none comes."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


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

    The tools are those that the server lists when the environment is made. Nothing of an episode is undone at
    its end: whether a server can be used again from the beginning is its own matter, so runs in it may not be
    repeatable.

    Args:
        place: Address of a server (``http://…/mcp``), or the command that starts one.
        task: The task in words.
        answer: Text that the final answer has to contain, in upper or lower case, for a reward of 1; empty
            for no reward.
        key_env: Environment variable with the key of a server at an address, which is sent as a bearer token.
        max_steps: Step limit of an episode.
        seconds: Time limit of the connection and of each call.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if the package mcp is missing, the server offers no tools, or there is no task or no key.
        HunchError: if the server cannot be reached.
    """

    metadata: ClassVar[dict[str, Any]] = {**Tools.metadata, "reproducible": False}  # type: ignore[misc]

    def __init__(
        self,
        place: str,
        *,
        task: str = "",
        answer: str = "",
        key_env: str = "",
        max_steps: PositiveInt = 16,
        seconds: PositiveFloat = 30.0,
        render_mode: str | None = None,
    ) -> None:
        if not task:
            raise UsageError("The tools of an MCP server come without a task: state one with --env.task.")
        if not place.strip():
            raise UsageError("mcp: names nothing: say which, as in mcp:http://127.0.0.1:8000/mcp.")
        self.server = Server(place, seconds, key_env)
        tools = [self._tool(listed) for listed in self.server.tools]
        if not tools:
            self.server.close()
            raise UsageError(f"The MCP server {place} offers no tools.")

        def score(text: str, calls: object) -> float:
            return float(answer.casefold() in text.casefold())

        self.is_copy = False
        try:
            super().__init__(
                tools,
                task=task,
                score=score if answer else None,
                max_steps=max_steps,
                # The server's own limit comes first, and its sentence is clearer.
                seconds=seconds + PATIENCE + 1.0,
                render_mode=render_mode,
            )
        except UsageError:  # such as two tools of one name
            self.server.close()
            raise

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
        self.is_copy = True

    def close(self) -> None:
        """End the connection; that of a copy is left to the environment that was copied."""
        if not self.is_copy:
            self.server.close()
        super().close()
