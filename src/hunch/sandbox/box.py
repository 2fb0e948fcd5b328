"""Sandboxes, and the programs that they run."""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Sequence
from typing import Literal, Self

import numpy as np

from hunch.core import HunchError, UsageError
from hunch.sandbox.process import Process, Spare
from hunch.sandbox.program import FORKED, Program
from hunch.sandbox.warm import Zygote

Isolation = Literal["kernel+namespaces", "kernel", "process", "none"]
LEVELS: tuple[Isolation, ...] = ("none", "process", "kernel", "kernel+namespaces")
"""The isolation levels, weakest first."""
TYPES = (float, int, str, bool, list, tuple, set, dict, np.ndarray, None)
"""Allowed values of ``returns``; None allows any of them."""


class Sandbox:
    """Runs untrusted programs.

    Args:
        seconds: Time limit in seconds for a call, for a batch of up to 1,000 calls (see :meth:`Program.map`),
            and for loading; and the same again for reading the values. A process that is started again for a
            call has both limits together.
        memory_mb: Memory limit in MiB beyond what Python and NumPy use. Not on macOS.
        least: The weakest acceptable isolation.
        modules: Modules that programs may import besides the standard library and NumPy. They are imported
            once, at the start, with the caller's search path, so name only modules that you trust.

    Attributes:
        isolation: The isolation on this machine, tested at the start: ``kernel+namespaces``, ``kernel``,
            ``process`` or ``none``.
        locks: The active locks, in words.

    Raises:
        UsageError: if this machine cannot provide the required isolation.
        HunchError: if the sandbox's own process cannot start.
    """

    def __init__(
        self,
        seconds: float = 5.0,
        memory_mb: int = 512,
        *,
        least: Isolation = "kernel",
        modules: Sequence[str] = (),
    ) -> None:
        if not (0 < seconds < math.inf and memory_mb > 0):
            raise UsageError("A sandbox needs seconds and memory_mb above 0.")
        if least not in LEVELS:
            raise UsageError(f"There is no isolation called {least!r}; there are {', '.join(LEVELS)}.")
        self.seconds, self.memory_mb, self.least, self.modules = seconds, memory_mb, least, tuple(modules)
        self._turn = threading.Lock()
        self._closed = False
        self._zygote: Zygote | None = None
        self._spare: Spare | None = None
        self.isolation: Isolation = "none"
        self.locks: tuple[str, ...] = ()
        FORKED.add(self)
        self._warm()

    def load(
        self,
        source: str,
        function: str,
        returns: type | None = None,
        *,
        state: Literal["kept", "fresh"] = "kept",
        finite: bool = True,
        total: float = math.inf,
    ) -> Program:
        """Run source code in a separate process, and return its function as a program.

        Args:
            source: Python code. It may import the standard library and NumPy, but has no access to files,
                network or other processes.
            function: Name of the program's function.
            returns: Type of the returned values; int, bool and 0-dimensional arrays count as float. None:
                any plain value.
            state: ``kept``: all calls go to one process, which keeps its state. ``fresh``: each call, or
                batch of calls, goes to a new process, with the same random state before each call; the first
                batch is also run in another order, and a different result is an error.
            finite: True if NaN and infinity are errors, also in arrays.
            total: Time limit in seconds for all calls together, including the time that the caller takes to
                send arguments and read values.

        Raises:
            ProgramError: if the source does not run, or the function is missing.
            UsageError: if an argument is wrong.
        """
        if not isinstance(source, str) or not isinstance(function, str):
            raise UsageError("source must be text, and function a name.")
        if returns not in TYPES:
            raise UsageError(
                "returns must be float, int, str, bool, list, tuple, set, dict, numpy.ndarray or None."
            )
        if state not in ("kept", "fresh"):
            raise UsageError(f"state must be 'kept' or 'fresh', not {state!r}.")
        if not total > 0:
            raise UsageError("total must be above 0.")
        return Program(self, source, function, returns, state == "fresh", finite, total)

    @property
    def pid(self) -> int:
        """Id of the process whose end stops all programs; the next call starts another process."""
        return self._warm().pid

    def start(self) -> Process:
        """Return a locked process without a program; another one is started in advance.

        Raises:
            HunchError: if the sandbox is closed, or its process cannot start again.
        """
        for _ in range(3):
            try:
                zygote = self._warm()
                process = self._taken(zygote) or Process.start(zygote)
                if process.read_locks() != self.locks:
                    raise HunchError("A program's process does not have all locks of its sandbox.")
                self._start_spare(zygote)
                return process
            except (EOFError, OSError):
                continue  # the zygote was killed, perhaps with the spare process: with a new one
        raise HunchError("The sandbox's own process ends repeatedly.")

    def _taken(self, zygote: Zygote) -> Process | None:
        """The spare process, which is nobody else's from now on; not that of a zygote that was killed."""
        with self._turn:
            spare, self._spare = self._spare, None
            return spare.process() if spare and spare.zygote is zygote else None

    def _start_spare(self, zygote: Zygote) -> None:
        with self._turn:
            if self._spare is None and self._zygote is zygote:
                self._spare = Spare(zygote)

    def _warm(self) -> Zygote:
        """The zygote, started again if it was killed or belongs to the parent of this process."""
        with self._turn:
            if self._closed:
                raise UsageError("This sandbox is closed: make a new one.")
            if self._zygote is None or not self._zygote.alive:
                if self._zygote is not None:
                    self._close()
                self._zygote = self._new_zygote()
            return self._zygote

    def _new_zygote(self) -> Zygote:
        if not hasattr(os, "fork"):
            raise UsageError("Programs cannot be run on this system: it has no fork. On Windows, use WSL 2.")
        zygote = Zygote(self.memory_mb * 2**20, self.modules)
        self._close = weakref.finalize(self, Zygote.close, zygote)
        try:
            trial = Process.start(zygote, test=True)
            zygote.contained = trial.read_test()
            trial.end()
            self.locks = Process.start(zygote).read_locks()
        except (EOFError, OSError):
            self._close()
            raise HunchError("A program's process ends while it locks itself in.") from None
        self.isolation = _level(zygote)
        if LEVELS.index(self.isolation) < LEVELS.index(self.least):
            self._close()
            raise UsageError(
                f"This machine provides only the isolation {self.isolation!r}, but {self.least!r} is "
                f"required. 'hunch sandbox' shows what is missing; least={self.isolation!r} runs programs "
                "anyway."
            )
        return zygote

    def close(self) -> None:
        """End all programs and the sandbox. May be called twice."""
        with self._turn:
            self._closed = True
            self._spare = None
            if self._zygote is not None:
                self._close()
                self._zygote = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forked(self) -> None:
        """In a fork of the caller: inherited processes belong to the parent."""
        self._turn = threading.Lock()
        self._spare = None
        if self._zygote is not None:
            self._close.detach()
            self._zygote.close()
            self._zygote = None


def _level(zygote: Zygote) -> Isolation:
    if not zygote.contained:
        return "process"
    return "kernel+namespaces" if zygote.walled else "kernel"
