"""Recognises that memory ran out, in the words of the system, of Python and of the libraries.

Some libraries do not say so. Where the address space of a process is limited (``ulimit -v``), torch ends it
while it is loaded ("terminate called ..."), and OpenBLAS, which NumPy and SciPy hold, waits for ever. Whether
there is room for them is therefore checked before they are loaded.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final, cast

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
MEGABYTE: Final = 2**20
ROOM: Final = {"numpy": 80, "torch": 470, "scipy": 70}
"""MB of address space that loading a library takes with one thread, measured (torch 2.13 for the CPU)."""
WITH_OPENBLAS: Final = ("numpy", "scipy")
PER_THREAD: Final = 40
"""MB that OpenBLAS takes for each further thread, while it is loaded."""


class NoRoomError(MemoryError):
    """The libraries that are needed do not fit into the address space of the process; the message says so."""


def is_lack_of_memory(error: BaseException | None) -> bool:
    """Return whether an error says that memory ran out; on a CPU torch raises a RuntimeError that does."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in WORDS)


def sentence(error: BaseException | None) -> str:
    """Return the sentence about an error that says that memory ran out."""
    return str(error) if isinstance(error, NoRoomError) else SENTENCE


def require_room() -> None:
    """Check before each of the libraries is loaded whether it fits, if the address space is limited.

    On systems without such a limit nothing happens, nor where the size of the process is not known.
    """
    if sys.platform != "linux":
        return
    try:
        import resource
    except ImportError:  # a Python that was built without it
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        sys.meta_path.insert(0, _Finder(limit))


class _Finder:
    """Finds the libraries as Python does, with a loader that checks the room first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return where a library is; None for all other modules."""
        spec = PathFinder.find_spec(name, path, target) if name in ROOM else None
        if spec is not None and spec.loader is not None:
            spec.loader = cast("Any", _Loader(spec.loader, self.limit))
        return spec


class _Loader:
    """Loads a library if it fits; else raises a NoRoomError."""

    def __init__(self, loader: Any, limit: int) -> None:
        self.loader, self.limit = loader, limit

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Check the room, and leave the rest to the library's own loader."""
        need = ROOM[spec.name]
        if spec.name in WITH_OPENBLAS:
            need += PER_THREAD * (_threads() - 1)
        left = (self.limit - _size()) // MEGABYTE
        if left < need:
            raise NoRoomError(
                f"There is not enough memory: {spec.name} needs {need} MB of address space, and "
                f"{max(left, 0)} of {self.limit // MEGABYTE} MB are left ('ulimit -v' shows the limit)."
            )
        spec.loader = self.loader
        module: ModuleType | None = self.loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Load the library; a module reaches this only through its own loader."""
        self.loader.exec_module(module)


def _size() -> int:
    """Return the address space of this process in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _threads() -> int:
    """Return the number of threads that OpenBLAS starts while it is loaded."""
    most = len(os.sched_getaffinity(0))
    for name in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"):
        asked = os.environ.get(name, "")
        if asked.isdecimal() and int(asked) > 0:
            return min(int(asked), most)
    return most
