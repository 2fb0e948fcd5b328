"""Recognises that memory ran out, in the words of the system, of Python and of the libraries."""

from __future__ import annotations

import errno
import os
import sys
from types import TracebackType
from typing import Final

WORDS: Final = (
    os.strerror(errno.ENOMEM),
    "failed to map segment",  # a library that does not fit
    "bad_alloc",
    "returned NULL without setting an exception",  # a part of Python or of a library that did not expect it
    "error return without exception set",
    "can't start new thread",
)
"""What errors say that are about memory and not of Python's own class."""
SENTENCE: Final = "There is not enough memory for this."


def is_lack_of_memory(error: BaseException | None) -> bool:
    """Return whether an error says that memory ran out; on a CPU torch raises a RuntimeError that does."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in WORDS)


def say_in_a_sentence() -> None:
    """Let the ``hunch`` command end with one sentence where memory runs out before it can handle errors.

    The libraries that are imported first may not fit, in the command's process or in one that it starts.
    Ctrl-C at this time is a sentence, too. Other programs are left as they are.
    """
    program = os.path.basename(sys.argv[0]).removesuffix(".exe") if sys.argv else ""
    is_command = program == "hunch" or sys.orig_argv[1:3] == ["-m", "hunch"]
    is_child = any("multiprocessing" in argument for argument in sys.orig_argv[1:5])
    if is_command or is_child:
        sys.excepthook = _shown


def _shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if is_lack_of_memory(error):
        sys.stderr.write(f"hunch: {SENTENCE}\n")
    elif isinstance(error, KeyboardInterrupt):
        sys.stderr.write("hunch: stopped.\n")
    else:
        sys.__excepthook__(kind, error, trace)
