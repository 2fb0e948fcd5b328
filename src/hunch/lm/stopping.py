"""A request to stop, as Ctrl-C makes it: what is under way may end, and nothing new is asked."""

from __future__ import annotations

import threading

_wanted = threading.Event()


class StoppingError(Exception):
    """Nothing more is asked, because the user wants to stop. Not a failure of the model."""


def stop() -> None:
    """Ask all models of this process to begin nothing new."""
    _wanted.set()


def go_on() -> None:
    """Take the request back, as the end of an interruptible part of a program does."""
    _wanted.clear()


def asked() -> bool:
    """Return whether the user wants to stop."""
    return _wanted.is_set()


def check() -> None:
    """Raise :class:`StoppingError` if the user wants to stop."""
    if asked():
        raise StoppingError
