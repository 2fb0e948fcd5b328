"""The event loop of this process, in a separate thread, so that all other code stays synchronous."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from hunch.lm.stopping import StoppingError

T = TypeVar("T")


def loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of this process, which runs in a separate thread."""
    with _lock:
        if not _loops:
            made = asyncio.new_event_loop()
            threading.Thread(target=made.run_forever, name="hunch-network", daemon=True).start()
            _loops.append(made)
        return _loops[0]


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop, and return its result.

    Raises:
        KeyboardInterrupt: if the user wants to stop. The work is then given up.
    """
    future = asyncio.run_coroutine_threadsafe(work, loop())
    try:
        return future.result()
    except StoppingError:
        raise KeyboardInterrupt from None
    finally:
        future.cancel()  # does nothing if it is done


_loops: list[asyncio.AbstractEventLoop] = []
_inherited: list[Any] = []
"""Loops and clients of a parent process; closing them here would close what the parent uses."""
_lock = threading.Lock()


def _forget() -> None:
    _inherited.append(list(_loops))
    _loops.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
    os.register_at_fork(after_in_child=_forget)
