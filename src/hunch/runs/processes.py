"""Processors, threads and signals of this process and of its child processes."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

POOLS = ("OMP", "MKL", "OPENBLAS", "NUMEXPR")
"""Libraries whose number of threads is set by ``<name>_NUM_THREADS`` when they are loaded."""


HANGUP: int | None = getattr(signal, "SIGHUP", None)
"""Signal of a terminal that was closed; Windows has none."""


def stop_signals() -> list[int]:
    """Return the signals that ask to save and stop: Ctrl-C, termination, and a closed terminal.

    A process that was started to outlive its terminal, as by ``nohup``, goes on.
    """
    signals: list[int] = [signal.SIGINT, signal.SIGTERM]
    if HANGUP is not None and signal.getsignal(HANGUP) is not signal.SIG_IGN:
        signals.append(HANGUP)
    return signals


@contextmanager
def stoppable(advice: str) -> Iterator[None]:
    """Let termination and a closed terminal end this block as Ctrl-C does.

    Args:
        advice: What is kept, and how to go on.

    Raises:
        KeyboardInterrupt: with this advice, after one of the signals.
    """

    def stop(number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in stop_signals()}
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(advice) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_signals_to_parent() -> None:
    """Ignore Ctrl-C and a closed terminal, which reach every process of it; the parent acts on them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if HANGUP is not None:
        signal.signal(HANGUP, signal.SIG_IGN)


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
