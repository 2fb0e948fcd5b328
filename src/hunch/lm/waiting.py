"""The line that whoever waits for a model sees in a terminal: what is asked, what is answered, how fast.

Nothing is shown in the first two seconds of a wait, in a pipe, in a log, in a notebook, or in a worker
process. A thread of its own draws the line, so that it moves while the caller waits. Where progress bars
are on the screen, they show the line instead (:func:`shown_by`).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from hunch.printable import printable

PATIENCE: Final = 2.0
"""Seconds of waiting before a line is shown."""
TICK: Final = 0.25
"""Seconds between two states of the line."""
WIDTH: Final = 100
"""Most characters of a line; a longer one would wrap in a narrow terminal and leave traces."""
CLEAR: Final = "\x1b[2K"

Show = Callable[[str], None]
"""Shows a line in place of the last one; an empty text ends the wait."""


class Wait:
    """A wait for answers.

    Attributes:
        total: Number of questions; 0 if they cannot be counted.
        answered: Number of answers so far.
        is_shown: True once a line of it was shown.
    """

    def __init__(self, what: str, total: int = 0, written: Callable[[], int] | None = None) -> None:
        """Begin to wait.

        Args:
            what: Who is waited for, such as the name of a model.
            total: See above.
            written: Returns the number of tokens that the model has written so far.
        """
        self.what, self.total, self.answered = what, total, 0
        self.is_shown = False
        self._written = written or (lambda: 0)
        self._before = self._written()
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the wait began."""
        return time.monotonic() - self._began

    def line(self) -> str:
        """Return the state of the wait in one line."""
        seconds = self.seconds
        parts = [f"{self.what}:"]
        if self.total:
            parts.append(f"{self.answered:,} of {self.total:,} answered,")
        tokens = self._written() - self._before
        if tokens > 0:
            parts.append(f"{tokens / seconds:,.1f} tokens/s,")
        if 0 < self.answered < self.total:
            left = seconds / self.answered * (self.total - self.answered)
            parts.append(f"about {_span(left)} left")
        else:
            parts.append(f"waiting for {_span(seconds)}")
        return " ".join(parts)[:WIDTH]


@contextmanager
def waiting(what: str, total: int = 0, written: Callable[[], int] | None = None) -> Iterator[Wait]:
    """Show a line while the block waits for a model, if it takes long and somebody can see it.

    Args:
        what: See :class:`Wait`.
        total: See :class:`Wait`.
        written: See :class:`Wait`.
    """
    wait = Wait(what, total, written)
    if _shows[-1] is None and not _is_terminal():
        yield wait
        return
    _begin(wait)
    try:
        yield wait
    finally:
        _end(wait)


@contextmanager
def shown_by(show: Show) -> Iterator[None]:
    """Let something else on the screen, such as progress bars, show the lines within the block."""
    _shows.append(show)
    try:
        yield
    finally:
        _shows.remove(show)


# ---- the thread that draws --------------------------------------------------------------------------------

_shows: list[Show | None] = [None]
"""Who shows the lines; the last one counts, and None is the terminal itself."""
_waits: list[Wait] = []
_lock = threading.Lock()
_busy = threading.Event()
_threads: list[threading.Thread] = []


def _begin(wait: Wait) -> None:
    with _lock:
        _waits.append(wait)
        if not _threads:
            _threads.append(threading.Thread(target=_draw, name="hunch-waiting", daemon=True))
            _threads[0].start()
    _busy.set()


def _end(wait: Wait) -> None:
    with _lock:
        _waits.remove(wait)
        if not _waits:
            _busy.clear()
        if wait.is_shown:
            _show("")


def _draw() -> None:
    while _busy.wait():
        time.sleep(TICK)
        with _lock:
            # The oldest wait is the outermost one; the innermost knows most of what happens.
            slow = [wait for wait in _waits if wait.seconds >= PATIENCE]
            if slow:
                slow[-1].is_shown = True
                _show(slow[-1].line())


def _show(text: str) -> None:
    show: Any = _shows[-1]
    with suppress(OSError, ValueError):  # the terminal may be closed
        if show is not None:
            show(text)
        else:
            # The cursor goes back to the beginning, so that a message of others replaces the line.
            stream: Any = getattr(sys.stderr, "direct", sys.stderr)  # the command shows control characters
            stream.write(f"{CLEAR}{printable(text)}\r")
            stream.flush()


def _is_terminal() -> bool:
    """Return whether standard error is a terminal that belongs to this process."""
    if multiprocessing.parent_process() is not None:
        return False
    try:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):
        return False


def _span(seconds: float) -> str:
    """Return a time in words."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole / 3600:.1f} h"


def _forget() -> None:
    """A forked child has no such thread, and its terminal is its parent's."""
    _waits.clear()
    _threads.clear()
    _busy.clear()
    _shows[:] = [None]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
    os.register_at_fork(after_in_child=_forget)
