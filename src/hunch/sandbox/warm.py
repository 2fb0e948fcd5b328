"""The caller's side of the zygote: starts it, requests processes, and receives their exit codes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hunch.core import HunchError
from hunch.sandbox.zygote import FORK, REPLY, REQUEST, TEST, WAIT

START_UP = 120.0
"""Maximum seconds for the zygote to start, or for a process to lock itself; not a program's time limit."""
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}


class Zygote:
    """The warm process from which a sandbox forks its programs.

    Attributes:
        owner: Id of the process that started the zygote; no other process may use it.
        walled: True if the zygote has separate namespaces.
        contained: True if the kernel locks of its forked processes work; assumed until tested.

    Raises:
        HunchError: if the zygote cannot start; the message has the last line of its output.
    """

    def __init__(self, memory: int, modules: Sequence[str]) -> None:
        self.owner = os.getpid()
        self.contained = True
        self._turn = threading.Lock()
        self._owed = False
        self._early: tuple[int, int | None] | None = None
        self._control, theirs = socket.socketpair()
        self._control.settimeout(START_UP)
        with theirs, tempfile.TemporaryFile() as complaints:
            try:
                self._process = self._start(theirs.fileno(), complaints, memory, modules)
            except OSError as error:
                self._control.close()
                raise HunchError(f"The sandbox's process cannot start: {error.strerror}.") from None
            theirs.close()
            try:
                self.walled = self._read(1) == b"+"
            except (OSError, EOFError):
                self.close()
                complaints.seek(0)
                said = complaints.read().decode(errors="replace").strip().splitlines() or ["it ended"]
                raise HunchError(f"The sandbox's process cannot start: {said[-1]}") from None

    def _start(
        self, control: int, complaints: IO[bytes], memory: int, modules: Sequence[str]
    ) -> subprocess.Popen[bytes]:
        settings = {
            "path": [folder for folder in sys.path if Path(folder).is_absolute()],
            "modules": list(modules),
            "memory": memory,
        }
        script = str(Path(__file__).with_name("zygote.py"))
        return subprocess.Popen(
            [sys.executable, "-S", "-s", "-P", script, json.dumps(settings)],
            stdin=control,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env=_ENVIRONMENT,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the caller
        )

    @property
    def pid(self) -> int:
        """Id of the process whose end stops all programs."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True if the zygote runs, belongs to this process, and follows the protocol."""
        return self.owner == os.getpid() and self._control.fileno() >= 0 and self._process.poll() is None

    def fork(self, end: socket.socket, *, test: bool) -> tuple[int, int | None]:
        """Start a process at one end of a pipe; return its id, and a file descriptor for signals.

        Raises:
            EOFError, OSError: if the zygote is gone.
        """
        with self._exchange():
            self._settle()
            self._ask_fork(end, test=test)
            return self._forked()

    def begin_fork(self, end: socket.socket) -> None:
        """Start a process at one end of a pipe without waiting; call ``finish_fork`` before the next start.

        Raises:
            EOFError, OSError: if the zygote is gone.
        """
        with self._exchange():
            self._ask_fork(end, test=False)
            self._owed = True

    def finish_fork(self) -> tuple[int, int | None]:
        """Return the id and the file descriptor of the process that ``begin_fork`` started.

        Raises:
            EOFError, OSError: if the zygote is gone.
        """
        with self._exchange():
            self._settle()
            early, self._early = self._early, None
            if early is None:
                raise EOFError
            return early

    def _ask_fork(self, end: socket.socket, *, test: bool) -> None:
        request = REQUEST.pack(FORK, TEST if test else 0)
        socket.send_fds(self._control, [request], [end.fileno()])

    def _forked(self) -> tuple[int, int | None]:
        data, handles, _, _ = socket.recv_fds(self._control, REPLY.size, 1)
        if len(data) < REPLY.size:
            raise EOFError
        return REPLY.unpack(data)[0], handles[0] if handles else None

    def _settle(self) -> None:
        """Read the reply that the zygote owes: replies come in the order of the requests."""
        if self._owed:
            self._early, self._owed = self._forked(), False

    def wait(self, process: int) -> int:
        """Wait for the end of a killed process; return its exit code, as in ``subprocess``.

        Raises:
            EOFError, OSError: if the zygote is gone.
        """
        with self._exchange():
            self._settle()
            self._control.sendall(REQUEST.pack(WAIT, process))
            code: int = REPLY.unpack(self._read(REPLY.size))[0]
            return code

    @contextmanager
    def _exchange(self) -> Iterator[None]:
        """One request and its reply at a time; an interrupted one is the last: they are out of step."""
        with self._turn:
            try:
                yield
            except BaseException:
                self._control.close()
                raise

    def _read(self, length: int) -> bytes:
        data = self._control.recv(length, socket.MSG_WAITALL)
        if len(data) < length:
            raise EOFError
        return data

    def close(self) -> None:
        """End the zygote and all its programs. A forked copy of the owner only closes its connection."""
        self._control.close()
        if self._early and self._early[1] is not None:
            os.close(self._early[1])
        self._early = None
        if self.owner != os.getpid():
            return
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
