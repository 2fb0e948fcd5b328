"""A text environment in a process of its own, which can be ended while it computes.

A thread cannot be ended in Python, and a regular expression that takes minutes holds the lock of all threads.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from hunch.core import HunchError
from hunch.ext.turns import Turn, Turns

STARTED = 60.0
"""Seconds that the first reset may take besides its limit; the process imports the environment."""
LONGEST_ERROR = 1_000
"""Characters of an error of an environment that the client is told."""
CLOSED = 1.0
"""Seconds that an environment may take to close."""


class TurnsProcess:
    """An environment of :class:`hunch.ext.turns.Turns` in a process that begins with the first reset.

    Args:
        turns: What is made again in the process.
        seconds: Time limit of a reset or an action. Process and episode end when it is over.
    """

    def __init__(self, turns: Turns, seconds: float) -> None:
        self.made_of, self.seconds = (turns.name, turns.options), seconds
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._ended = False

    def reset(self, seed: int | None = None, **options: int | None) -> Turn:
        """Begin an episode; the same seed gives the same episode.

        Raises:
            HunchError: if the environment fails or takes too long; the next reset begins a new process.
        """
        limit = self.seconds if self._process else self.seconds + STARTED
        return self._ask(self._started(), ("reset", (seed,), options), limit)

    def step(self, text: str) -> Turn:
        """Take a text as the action.

        Raises:
            HunchError: if there is no episode, the environment fails, or it takes too long.
        """
        if self._pipe is None:
            raise HunchError("No episode is running: call reset before step.")
        return self._ask(self._pipe, ("step", (text,), {}), self.seconds)

    def close(self) -> None:
        """Close the environment, and end the process."""
        if self._pipe is not None and self._process is not None:
            try:
                self._pipe.send(None)
                self._process.join(CLOSED)
            except OSError:
                pass  # it has ended
        self.end()

    def end(self, *, ended: bool = False) -> None:
        """End the process at once, from any thread.

        Args:
            ended: True if none may begin any more.
        """
        self._ended = self._ended or ended
        process, self._process = self._process, None
        pipe, self._pipe = self._pipe, None
        if process is not None:
            process.kill()
            process.join()
        if pipe is not None:
            pipe.close()

    def _started(self) -> Connection:
        if self._pipe is None:
            if self._ended:
                raise HunchError("The server is shutting down.")
            context = _context()
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_work, args=(theirs, *self.made_of), daemon=True)
            self._process.start()
            theirs.close()
        return self._pipe

    def _ask(self, pipe: Connection, request: Any, limit: float) -> Turn:
        try:
            pipe.send(request)
            if not pipe.poll(limit):
                self.end()
                raise HunchError(
                    f"The environment did not answer within {limit:g} seconds: its episode has ended, reset "
                    "begins another."
                )
            turn, problem = pipe.recv()
        except (OSError, EOFError, TypeError) as error:  # a pipe that another thread closes has no handle
            self.end()
            raise HunchError("The environment's process has ended; reset begins another.") from error
        if problem:
            raise HunchError(problem)
        return Turn(*turn)


def _context() -> Any:
    """Return how processes begin: from one that has the imports, where there are forks, else from nothing."""
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _work(pipe: Connection, name: str, options: dict[str, Any]) -> None:
    """Answer resets and steps until the other side closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the server acts on it
    threading.Thread(target=_end_with_server, daemon=True).start()
    turns: Turns | None = None
    while (request := _received(pipe)) is not None:
        method, arguments, named = request
        try:
            turns = turns or Turns(name, **options)
            answer: tuple[Any, str] = tuple(getattr(turns, method)(*arguments, **named)), ""
        except BaseException as error:  # whatever the environment raises, the client is told
            answer = None, _told(error)
        try:
            pipe.send(answer)
        except OSError:
            break  # nobody is there
    if turns is not None:
        turns.env.close()


def _told(error: BaseException) -> str:
    """Return what the client is told of an error; its text is a stranger's, and may be long or fail."""
    try:
        text = str(error)
    except Exception:  # an error without a text
        text = ""
    if not isinstance(error, HunchError):
        text = f"{type(error).__name__}: {text}".removesuffix(": ")
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}..."


def _end_with_server() -> None:
    """End this process as soon as the server has ended, in whatever way."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _received(pipe: Connection) -> Any:
    try:
        return pipe.recv()
    except (EOFError, OSError):
        return None
