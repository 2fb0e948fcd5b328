"""Processors and threads of this process and of its child processes."""

from __future__ import annotations

import multiprocessing as mp
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

POOLS = ("OMP", "MKL", "OPENBLAS", "NUMEXPR")
"""Libraries whose number of threads is set by ``<name>_NUM_THREADS`` when they are loaded."""


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_limits(threads: int) -> dict[str, str]:
    """Return environment variables that limit the threads of numerical libraries before they are loaded."""
    return {f"{name}_NUM_THREADS": str(threads) for name in POOLS}


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables within a ``with`` block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def end_with_parent() -> None:
    """End this worker process as soon as its parent process has ended, in whatever way.

    Otherwise the workers of a pool would wait for ever after their parent was killed.
    """
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    if parent := mp.parent_process():
        parent.join()
        os._exit(1)
