"""Requests over a network: many at once, each with a timeout, retried if that can help.

What passes is waited for. A request is retried after HTTP 409, 429 and 5xx (except 501), a broken
connection, and a reply that is truncated or malformed. The pause before a retry is 0.5, 1, 2, ... seconds, at
most 30, each times a random number in [0.5, 1), or the server's ``Retry-After``, whichever is longer. If the
server is busy or loads its model (HTTP 429, 503, 529, or a ``Retry-After``), the wait counts against the
request's patience in seconds, not against its attempts.

What cannot pass is not asked again: other 4xx, an exhausted quota, and a server that cannot be reached on the
first request. A slow server is no faster the second time, so a request that timed out is sent once more, with
twice the time. After Ctrl-C nothing new begins.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from hunch.core import HunchError, UsageError
from hunch.lm import stopping
from hunch.lm.backends.account import Account

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
LONGEST_ASKED_WAIT = 120.0
"""Longest ``Retry-After`` in seconds for which a request waits."""
LONGEST_REPLY = 64 * 2**20
"""Maximum bytes of a reply that are read; a normal reply has some kilobytes."""
PASSING = {408, 409, 429, *range(500, 600)} - {501}
"""HTTP statuses after which a retry may succeed."""
BUSY = {429, 503, 529}
"""HTTP statuses of a server that has too much to do, or that loads its model."""
SLOW = {408, 504, 522, 524}
"""HTTP statuses of a request that took too long somewhere on its way."""
EXHAUSTED = re.compile(r"insufficient_quota|credit balance|[a-z]PerDay", re.IGNORECASE)
"""What services say with HTTP 429 if waiting does not help; Gemini names a quota of a day."""
UNPAID = re.compile(r"exceeded your current quota|billing", re.IGNORECASE)
"""What they say of a quota that is used up, and also beside a limit per minute, as advice to pay for more."""
RATE = re.compile(r"rate.?limit|try (again )?in\b", re.IGNORECASE)
"""What they say of a limit per minute: that passes."""
LAST_TIMEOUT = 2
"""Number of attempts of a request that takes too long; each has twice the time of the one before."""
SILENCES = 2
"""Number of attempts of a request whose reply is sound but empty: a server with seeds repeats itself."""
PROBES = 2
"""Number of attempts of a small question at load that the server answers with an error of its own."""
UNFIT = 3
"""Number of attempts of a small question at load whose replies are JSON of another kind."""
NAP = 0.1
"""Longest time in seconds for which Ctrl-C is not noticed while a request waits."""
SHOWN = 200
"""Maximum characters of a server's text in a message."""
READ = 4_000
"""Maximum characters of a server's text that are read."""


class RequestError(HunchError):
    """A request failed.

    Attributes:
        passing: True if a retry may succeed.
        status: The HTTP status; 0 if there was none.
        after: Seconds that the server asks to wait.
        unreached: True if no connection could be made.
        says: The server's words, of which a message shows the beginning; without the key.
        slow: True if the request took too long, so that the same one is no use.
        unfit: True if the reply is JSON, but no answer.
        silent: True if the reply is sound, but has no text, or no candidates for a label.
    """

    def __init__(
        self,
        sentence: str,
        *,
        passing: bool = True,
        status: int = 0,
        after: float | None = None,
        unreached: bool = False,
        says: str = "",
        slow: bool = False,
        unfit: bool = False,
        silent: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.passing = passing
        self.status = status
        self.after = after
        self.unreached = unreached
        self.says = says
        self.slow = slow
        self.unfit = unfit
        self.silent = silent

    @property
    def busy(self) -> bool:
        """True if the server asks to retry later."""
        return self.status in BUSY or self.after is not None


class Request(NamedTuple):
    """A request with the function that reads its reply.

    Attributes:
        path: Path below the base URL.
        body: Sent as JSON; None for a GET request.
        read: Turns the reply's JSON into the answer. An error other than a
            :class:`~hunch.core.HunchError` means that the reply is malformed.
        unique_keys: True if a reply with an object that names a key twice is malformed. By default the last
            one counts, as usual in JSON.
    """

    path: str
    body: dict[str, Any] | None
    read: Callable[[Any], Any]
    unique_keys: bool = False


ROLES = re.compile(
    r"system (role|message|prompt)|role.{0,20}\bsystem\b|roles? must alternate|alternat\w+ roles?"
    r"|chat.?template|jinja|unexpected message role|(first|last) message must|expected.{0,40}\brole",
    re.IGNORECASE,
)
"""What servers say of messages that a chat template refuses."""
Count = Callable[[Request, Any], None]
"""Counts an attempt from its request and the JSON of its reply; None if it could not be read."""


class Line:
    """The connection to one server.

    Attributes:
        account: The server.
        retries: Number of retries so far.
    """

    def __init__(
        self, account: Account, *, concurrency: int, timeout: float, retries: int, patience: float
    ) -> None:
        """Prepare the connection; nothing is sent yet.

        Args:
            account: The server.
            concurrency: Maximum number of simultaneous requests.
            timeout: Seconds per attempt, from sending to the last byte.
            retries: Maximum number of attempts after the first.
            patience: Seconds to wait in total for a server that asks to retry later.

        Raises:
            UsageError: if a number is out of range.
        """
        for name, value, least in (("concurrency", concurrency, 1), ("retries", retries, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}.")
        for name, seconds, shortest in (("timeout", timeout, 0.001), ("patience", patience, 0)):
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not shortest <= seconds:
                raise UsageError(f"{name} must be a number of at least {shortest}, not {seconds!r}.")
        self.account = account
        self.timeout = float(timeout)
        self.patience = float(patience)
        self.concurrency = concurrency
        self.attempts = retries + 1
        self.retries = 0  # so far
        self._begin()

    def _begin(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self._gate = asyncio.Semaphore(self.concurrency)
        self._reached = False

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    async def send(
        self,
        request: Request,
        skip: Callable[[], bool] | None = None,
        count: Count | None = None,
        *,
        probe: bool = False,
    ) -> Any:
        """Send a request, with retries, and return its answer.

        Args:
            request: The request.
            skip: Called before each attempt, in another thread; True means that the answer is known by now.
                If it raises an error, nothing more is sent.
            count: Called after each attempt that may have cost something.
            probe: True for a small question whose failure is an answer as well: few attempts.

        Returns:
            The answer; None if it was skipped.

        Raises:
            HunchError: if the last attempt failed, or a retry cannot help.
            StoppingError: if the user wants to stop.
        """
        self._enter()
        failures = broken = unfit = busy = timeouts = silences = 0
        waited = 0.0
        while True:
            async with self._gate:
                stopping.check()
                if skip is not None and await asyncio.to_thread(skip):
                    return None
                patience = self.timeout * 2**timeouts
                answer = await self._attempt(request, count or (lambda *_: None), patience)
            if not isinstance(answer, HunchError):
                return answer
            error = answer if isinstance(answer, RequestError) else RequestError(str(answer), passing=False)
            if error.busy:
                busy += 1
                pause = waiting(busy, error.after)
                waited += pause
            else:
                failures += 1
                timeouts += error.slow
                silences += error.silent
                broken += error.status >= 500
                unfit += error.unfit
                pause = waiting(failures, None)
            if failures == self.attempts or waited > self.patience or not self._worth_waiting(error):
                raise answer
            if timeouts == LAST_TIMEOUT or silences == SILENCES or (probe and error.slow):
                raise answer
            if probe and (broken == PROBES or unfit == UNFIT):
                raise answer
            await self._wait(pause)
            self.retries += 1

    async def _wait(self, seconds: float) -> None:
        """Wait before a retry, but not if the user wants to stop."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            stopping.check()
            await asyncio.sleep(min(NAP, left))

    def _enter(self) -> None:
        """Make a client for the running event loop, which is another one in a forked child."""
        here = asyncio.get_running_loop()
        if self._loop is not here:
            _inherited.append((self._loop, self._client))
            self._begin()
            self._loop, self._client = here, self.account.connect(limit)

    def _worth_waiting(self, error: RequestError) -> bool:
        if error.unreached and not self._reached:
            return False
        return error.passing and (error.after is None or error.after <= LONGEST_ASKED_WAIT)

    async def _attempt(self, request: Request, count: Count, seconds: float) -> Any:
        """Return the answer, or the error as a value: a raised error would keep the request alive."""
        try:
            async with asyncio.timeout(seconds):
                text = await self._exchange(request)
        except TimeoutError:
            late = f"{self.account.host} did not answer within {seconds:g} seconds"
            remedy = "a larger timeout= or fewer tokens per answer may help"
            error = RequestError(f"{late}: {remedy}.", slow=True)
        except UnicodeError:
            return RequestError(
                "A prompt contains a lone surrogate (half a character), which cannot be sent.",
                passing=False,
            )
        except Exception as failure:
            error = self._failed(failure)
        else:
            self._reached = True
            return self._read(request, text, count)
        if not error.status and not error.unreached:
            count(request, None)
        return error

    def _read(self, request: Request, text: str, count: Count) -> Any:
        """Return the answer in a reply, or the error."""
        if self.account.holds_key(text):
            count(request, None)
            return RequestError(
                f"{self.account.host} repeats the key in a reply, which is not used.", passing=False
            )
        try:
            # Some servers begin with a byte order mark, which is no part of the reply.
            reply = json.loads(
                text.removeprefix("\ufeff"), object_pairs_hook=_once if request.unique_keys else None
            )
        except (ValueError, RecursionError):
            reply = None
        try:
            answer = request.read(reply)
        except HunchError as error:
            answer = error
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            count(request, None)
            failed = isinstance(reply, dict) and bool(reply.get("error"))
            shown = self.clean(message(text) if failed else text) or "nothing"
            sentence = f"{self.account.host} {_fault(text, failed)}: {shown}"
            return RequestError(sentence, unfit=reply is not None)
        count(request, reply)
        return answer

    async def _exchange(self, request: Request) -> str:
        if request.body is None:
            text: str = await self._client.get(request.path, cast_to=str)
        else:
            text = await self._client.post(request.path, cast_to=str, body=request.body)
        return text

    def _failed(self, error: Exception) -> RequestError:
        """Turn an error of the SDK into one sentence."""
        library, host = self.account.library(), self.account.host
        if isinstance(error, library.APIStatusError):
            self._reached = True
            status = int(error.status_code)
            says = self.account.hidden(message(error.response.text)[:READ])
            after = retry_after(error.response.headers)
            hint = self._hint(status) + (f" (asks to wait {after:g} s)" if after else "")
            why = self.clean(says) or self._elsewhere(error.response.headers) or "no reason given"
            sentence = f"{host} refuses the request with HTTP {status}{hint}: {why}"
            passing = status in PASSING and not exhausted(error.response.text[:READ])
            # Some servers report a template that refuses the messages as an error of their own.
            passing = passing and not (status == 500 and ROLES.search(says))
            return RequestError(
                sentence, passing=passing, status=status, after=after, says=says, slow=status in SLOW
            )
        cause = error.__cause__ or error
        if isinstance(cause, ReplyError):
            return RequestError(f"{host} {cause}.", passing=False)
        if isinstance(error, library.APIError):
            unreached = type(cause).__name__ == "ConnectError"
            how = "cannot be reached" if unreached else "broke off the connection"
            # Other connection errors may quote the request, and so the key.
            why = self.clean(str(cause)) if unreached else type(cause).__name__
            return RequestError(f"{host} {how} ({why}).", unreached=unreached)
        return RequestError(f"{host} sent a reply that cannot be read ({type(error).__name__}).")

    def _hint(self, status: int) -> str:
        return f" ({self.account.key_source})" if status in (401, 403) else ""

    def _elsewhere(self, headers: Any) -> str:
        """Return where a redirect leads, in words; requests do not follow it, as it may lead to anyone."""
        address = str(headers.get("location") or "")
        return address and f"it moved to {self.clean(address)}: if that is right, base_url= has to name it"

    def clean(self, text: str) -> str:
        """Shorten text to one line without the key, which some servers repeat."""
        line = " ".join(self.account.hidden(text[:READ]).split())
        return line[:SHOWN] + "..." * (len(line) > SHOWN)


def exhausted(says: str) -> bool:
    """Return whether a service says that a quota is used up, so that waiting does not help."""
    return bool(EXHAUSTED.search(says) or (UNPAID.search(says) and not RATE.search(says)))


def waiting(attempt: int, asked: float | None) -> float:
    """Return the seconds to wait before the next attempt; ``attempt`` counts the failed ones.

    The server's ``Retry-After`` is a minimum; up to a tenth is added so that clients do not retry together.
    """
    pause = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempt - 1, 60)) * _chance.uniform(0.5, 1.0)
    return max(pause, (asked or 0.0) * _chance.uniform(1.0, 1.1))


_chance = random.Random()  # not the global one: a run's own draws must not depend on the network


def retry_after(headers: Any) -> float | None:
    """Return the seconds that a server asks to wait, given as seconds or as a date; None if it does not."""
    asked = headers.get("retry-after")
    if asked is None:
        return None
    try:
        seconds = float(asked)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds == seconds else None


class ReplyError(Exception):
    """The reply may exceed the size limit, so it is not read."""


def limit(streams: Any) -> Callable[[Any], Awaitable[None]]:
    """Return a client hook that stops reading a reply at the limit; it is called before the body is read.

    Args:
        streams: The client's byte-stream class.
    """
    too_long = f"sent a reply of more than {LONGEST_REPLY:,} bytes, which no answer has"

    class Limited(streams):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self.stream:
                size += len(part)
                if size > LONGEST_REPLY:
                    raise ReplyError(too_long)
                yield part

        async def aclose(self) -> None:
            await self.stream.aclose()

    async def apply(response: Any) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ReplyError("sent a compressed reply that was not asked for")
        if int(response.headers.get("content-length") or 0) > LONGEST_REPLY:
            raise ReplyError(too_long)
        response.stream = Limited(response.stream)
        response.encoding = "utf-8"  # as JSON always is; some servers name another one all the same

    return apply


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON whose keys differ."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a key is named twice")
    return entries


def _fault(text: str, failed: bool) -> str:
    """Return what is wrong with a reply that has the status of success, in words."""
    start = text.lstrip()
    if failed:
        return "answers with an error"
    if start.startswith("data:"):
        return "streams its answer, which was not asked for: turn that off at the server. It sent"
    if start.startswith("<"):
        return "sent a web page: does base_url= lead to its API, which often ends in /v1? It sent"
    return "sent a malformed reply"


def message(text: str) -> str:
    """Return the message of an error reply, whose format differs between servers."""
    try:
        reply = json.loads(text)
        said = reply.get("error", reply)
        if isinstance(said, str):
            return said
        said = said.get("message") or said.get("detail") or said
        if isinstance(said, dict):  # {"detail": {"error_type": …, "message": …}}
            return str(said.get("message") or said)
        if isinstance(said, list):  # one entry per wrong field, as FastAPI writes them
            return "; ".join(f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}" for entry in said)
        return str(said)
    except (ValueError, AttributeError, TypeError, LookupError, RecursionError):
        return text


_inherited: list[Any] = []
"""Loops and clients of a parent process; closing them here would close what the parent uses."""
