"""The caller's side of a program's process. Nothing that the process sends is trusted."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import time
import weakref
from typing import Any

from hunch.core import HunchError
from hunch.sandbox import frames, wire
from hunch.sandbox.errors import (
    KILLED,
    ArgumentError,
    ProgramCrash,
    ProgramError,
    ProgramMemory,
    ProgramRefused,
    ProgramTimeout,
    ProgramValue,
)
from hunch.sandbox.warm import START_UP, Zygote

_KINDS: dict[str, type[ProgramError]] = {
    "crash": ProgramCrash,
    "memory": ProgramMemory,
    "refused": ProgramRefused,
    "value": ProgramValue,
}
_LAST_WORDS = 0.5
"""Maximum seconds for a process to end after its pipe has closed."""


class Process:
    """A locked process: one answer per request, within a time limit. The process is paused between requests.

    Attributes:
        owner: The caller's process id; a fork of the caller must not use this object.
        zygote: The warm process from which this process was forked.
    """

    def __init__(self, zygote: Zygote, pipe: socket.socket, pid: int, handle: int | None) -> None:
        self.owner = os.getpid()
        self.zygote = zygote
        self._pipe, self._pid, self._handle = pipe, pid, handle
        if self._handle is not None and not (zygote.contained or zygote.walled):
            os.close(self._handle)  # it may have children: only its process group ends them all
            self._handle = None
        self._end = weakref.finalize(self, _end, self._pipe, self._pid, self._handle, self.owner)

    @classmethod
    def start(cls, zygote: Zygote, *, test: bool = False) -> Process:
        """Start a process.

        Raises:
            EOFError, OSError: if the zygote is gone.
        """
        pipe, theirs = socket.socketpair()
        with theirs:
            return cls(zygote, pipe, *zygote.fork(theirs, test=test))

    def read_test(self) -> bool:
        """Return whether the locks hold; only for a process that was started to test them."""
        return self._receive(1, time.monotonic() + START_UP) == b"+"

    def read_locks(self) -> tuple[str, ...]:
        """Wait until a new process is locked, and return its locks in words.

        Raises:
            HunchError: if a lock failed.
            EOFError, OSError: if the process ended.
        """
        deadline = time.monotonic() + START_UP
        word = frames.decode(frames.read_frame(lambda length: self._receive(length, deadline)))
        if "problem" in word:
            raise HunchError(f"A program's process cannot lock itself in: {word['problem']}.")
        return tuple(word["locks"])

    def ask(self, request: dict[str, Any], seconds: float, used: float = 0.0) -> dict[str, Any]:
        """Send a request and return the answer. After most errors the process has ended; see ``alive``.

        Args:
            request: Any JSON value.
            seconds: Time limit for the answer.
            used: Seconds of the limit that have already passed.

        Raises:
            ArgumentError: if the request cannot be sent.
            ProgramError: if there is no valid answer in time, or the program failed.
            HunchError: if the process was killed from outside.
        """
        identity = secrets.token_hex(16)
        try:
            payload = frames.framed(frames.encode({"id": identity, **request}))
        except wire.WireError as error:
            raise ArgumentError(f"This cannot be passed to a program: {error}.") from None
        try:
            answer = frames.decode(self._exchange(payload, time.monotonic() + seconds - used))
        except TimeoutError:
            self.end()
            raise ProgramTimeout("Timeout", f"no answer within {seconds:g} seconds") from None
        except (EOFError, ConnectionError):
            raise self._fate() from None
        except wire.WireError as error:
            self.end()
            raise ProgramValue("Value", f"it returned {error}") from None
        except BaseException:
            self.end()
            raise
        if answer.pop("id", None) != identity:
            self.end()
            raise ProgramRefused("Forgery", "it sent an answer of its own making")
        if "error" in answer:
            failure = reported(answer["error"])
            if not isinstance(failure, ProgramCrash | ProgramValue):
                self.end()  # out of memory, or not a program at all
            raise failure
        return answer

    def _exchange(self, payload: bytes, deadline: float) -> bytes:
        """Wake the process, send, receive one frame, and stop it."""
        self._expect_silence()
        _signal(self._pid, self._handle, signal.SIGCONT)
        self._pipe.settimeout(_left(deadline))
        self._pipe.sendall(payload)
        answer = frames.read_frame(lambda length: self._receive(length, deadline))
        _signal(self._pid, self._handle, signal.SIGSTOP)
        return answer

    def _expect_silence(self) -> None:
        """Between requests per program has nothing to say.

        Raises:
            ProgramRefused: if it has said something.
            EOFError: if it has closed its pipe.
        """
        self._pipe.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            if not self._pipe.recv(1):
                raise EOFError
            raise ProgramRefused("Forgery", "it answered more than once")

    def _receive(self, length: int, deadline: float) -> bytes:
        self._pipe.settimeout(_left(deadline))
        return self._pipe.recv(length)

    def _fate(self) -> HunchError:
        """Return what happened to a process that closed its pipe."""
        by_itself = self._has_ended()
        _signal(self._pid, self._handle, signal.SIGKILL)
        try:
            code = self.zygote.wait(self._pid)
        except (EOFError, OSError):
            return HunchError("The sandbox's own process was killed. The next call starts it again.")
        finally:
            self.end()
        if not by_itself:
            return ProgramCrash("Exit", "it closed the pipe to its caller")
        if code == -signal.SIGKILL:
            return ProgramMemory(KILLED, "the system killed it, most likely for memory")
        if code < 0:
            # Most real-time signals have no name.
            known = {one.value: one.name for one in signal.Signals}
            name = known.get(-code, f"signal {-code}")
            return ProgramCrash(name, f"its process died of {name}")
        return ProgramCrash("Exit", f"it ended its own process with exit code {code}")

    def _has_ended(self) -> bool:
        if self._handle is None:
            return True
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return bool(poll.poll(_LAST_WORDS * 1_000))

    @property
    def alive(self) -> bool:
        """True if the process can answer another request, as after an exception of the program."""
        return self._end.alive

    def end(self) -> None:
        """Kill the process; in a fork of the caller, only close the connection to the process."""
        self._end()


class Spare:
    """A process that is started and locked in the background; one per zygote.

    Raises:
        EOFError, OSError: if the zygote is gone.
    """

    def __init__(self, zygote: Zygote) -> None:
        self.zygote = zygote
        self._pipe, theirs = socket.socketpair()
        with theirs:
            zygote.begin_fork(theirs)

    def process(self) -> Process:
        """Return the process; may be called once.

        Raises:
            EOFError, OSError: if the zygote is gone.
        """
        return Process(self.zygote, self._pipe, *self.zygote.finish_fork())


def reported(error: Any) -> ProgramError:
    """Return the error that a program's process reports, after checks, because the process is not trusted."""
    if type(error) is not dict:
        return ProgramRefused("Forgery", "it sent an answer of its own making")
    kind = _KINDS.get(error["kind"], ProgramCrash) if type(error.get("kind")) is str else ProgramCrash
    type_, message = (text if type(text) is str else "" for text in (error.get("type"), error.get("message")))
    line, index = (
        number if type(number) is int and 0 <= number < 2**31 else None
        for number in (error.get("line"), error.get("index"))
    )
    return kind(type_, message, line, index)


def _left(deadline: float) -> float:
    """Seconds until then.

    Raises:
        TimeoutError: if there are none.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _signal(pid: int, handle: int | None, number: int) -> None:
    """Signal a process: by its handle, which is right in other namespaces too, else its process group.

    Raises:
        HunchError: if the kernel refuses.
    """
    try:
        if handle is None:
            os.killpg(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    except OSError as error:
        raise HunchError(
            f"The kernel does not let the sandbox stop its programs: {error.strerror}."
        ) from None


def _end(pipe: socket.socket, pid: int, handle: int | None, owner: int) -> None:
    """Kill a process and close what belongs to it; takes no lock, since it may run at any moment."""
    try:
        if owner == os.getpid():
            _signal(pid, handle, signal.SIGKILL)
    finally:
        pipe.close()
        if handle is not None:
            os.close(handle)
