"""The first moment of the ``hunch`` command: what ends it before it can handle errors is one sentence.

Three things do: memory that is too small for the libraries, Ctrl-C, and signals that ask to end (termination
and a closed terminal), which count as Ctrl-C from here on. Other programs that import the library are left as
they are.
"""

from __future__ import annotations

import os
import sys

PROGRAM = os.path.basename(sys.argv[0]).removesuffix(".exe") if sys.argv else ""
IS_COMMAND = PROGRAM == "hunch" or sys.orig_argv[1:3] == ["-m", "hunch"]
STOPPED = "stopped; the same command begins again."
"""What is said where nothing is to be said about what is kept."""


def _shown_first(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show Ctrl-C as a sentence while the modules are loaded that :func:`_shown` needs."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write(f"hunch: {STOPPED}\n")
    else:
        sys.__excepthook__(kind, error, trace)


if IS_COMMAND:
    sys.excepthook = _shown_first  # before the imports below, which take time

import atexit  # noqa: E402
import signal  # noqa: E402
import threading  # noqa: E402
from types import FrameType, TracebackType  # noqa: E402
from typing import Any, Final  # noqa: E402

from hunch import little_memory  # noqa: E402

AGAIN: Final = 0.05
"""Seconds after which a signal counts again that came where Python cannot raise an error."""
ENDING: Final = ("SIGTERM", "SIGHUP")


def prepare() -> None:
    """Prepare the process, if it is that of the command or one that the command starts."""
    if IS_COMMAND or _is_child():
        sys.excepthook = _shown
        little_memory.require_room()
    if IS_COMMAND:
        sys.unraisablehook = _unraisable
        atexit.register(_ignore)  # first of all, so that it is called last
        for name in ENDING:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # not after nohup
                signal.signal(number, _stop)


def _is_child() -> bool:
    """Return whether this process is one that the command, or another program, starts."""
    return any("multiprocessing" in argument for argument in sys.orig_argv[1:5])


def end() -> None:
    """Let the next signal end the process at once: there is nothing left that an error could tell."""
    for name in ("SIGINT", *ENDING):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _ignore() -> None:
    """Ignore signals while Python takes itself down: all is done, and the exit code should say so."""
    for name in ("SIGINT", *ENDING):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, signal.SIG_IGN)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _unraisable(error: Any) -> None:
    """Let a signal count again that came while Python calls what may not raise, such as a weak reference."""
    if issubclass(error.exc_type, KeyboardInterrupt):
        threading.Timer(AGAIN, signal.raise_signal, [signal.SIGINT]).start()
    else:
        sys.__unraisablehook__(error)


def _shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if little_memory.is_lack_of_memory(error):
        sys.stderr.write(f"hunch: {little_memory.sentence(error)}\n")
    elif isinstance(error, KeyboardInterrupt):
        if not _is_child():  # Ctrl-C reaches every process; the one that started this one says so
            sys.stderr.write(f"hunch: {STOPPED}\n")
    elif isinstance(error.__cause__, KeyboardInterrupt):
        # Python 3.11 turns what is raised while a class gets its attributes into a RuntimeError.
        _shown(KeyboardInterrupt, error.__cause__, trace)
        sys.stderr.flush()
        end()
        signal.raise_signal(signal.SIGINT)  # the exit code of Ctrl-C, not that of an error
    else:
        sys.__excepthook__(kind, error, trace)
