"""Recognises that memory ran out, in the words of the system, of Python and of the libraries.

Where a process takes more than the machine has, Linux ends it without a word. What may be large, such as an
update of a model, is therefore limited to what is free (:func:`at_most_what_is_free`).

Some libraries do not say so either. Where the address space of a process is limited (``ulimit -v``), torch
ends it while it is loaded ("terminate called ..."), and OpenBLAS, which NumPy and SciPy hold, waits for ever.
Whether there is room for them is therefore checked before they are loaded.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
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
RESERVE: Final = 0.05
"""Share of the free memory that a block leaves to the others."""


class NoRoomError(MemoryError):
    """The libraries that are needed do not fit into the address space of the process; the message says so."""


def is_lack_of_memory(error: BaseException | None) -> bool:
    """Return whether an error says that memory ran out; on a CPU torch raises a RuntimeError that does."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in WORDS)


def ran_out(error: BaseException | None) -> bool:
    """Return whether an error says that memory ran out, that of the machine or of a device of torch."""
    torch: Any = sys.modules.get("torch")
    on_device = torch is not None and isinstance(error, torch.cuda.OutOfMemoryError)
    return on_device or is_lack_of_memory(error)


def sentence(error: BaseException | None) -> str:
    """Return the sentence about an error that says that memory ran out."""
    return str(error) if isinstance(error, NoRoomError) else SENTENCE


@contextmanager
def at_most_what_is_free() -> Iterator[None]:
    """Let this process take no more memory in this block than is free, so that it gets an error beyond that.

    Free is what the system can give without swapping, and what the process's control group leaves. The limit
    is that of data (``ulimit -d``), which Linux alone applies to all memory that a process asks for; on other
    systems, and where the amounts are not known, nothing happens. A lower limit stays.
    """
    limit = _size_of_data_at_most()
    try:
        import resource
    except ImportError:  # Windows, or a Python that was built without it
        limit = None
    if limit is None:
        yield
        return
    usual, most = resource.getrlimit(resource.RLIMIT_DATA)
    known = [value for value in (usual, most) if value != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([limit, *known]), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (usual, most))


def _size_of_data_at_most() -> int | None:
    """Return the bytes of data that this process has and may still take; None where that is not known."""
    room = free()
    try:
        return None if room is None else _amount("/proc/self/status", "VmData") + int((1 - RESERVE) * room)
    except (OSError, ValueError):
        return None


def free() -> int | None:
    """Return how many bytes this process may still take; None where the system, as most, does not tell."""
    try:
        amounts = [_amount("/proc/meminfo", "MemAvailable")]
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    group = Path(*[line.removeprefix("0::/") for line in groups if line.startswith("0::/")])  # of version 2
    # Each group above limits, too; that of the machine, which has no such files, does not.
    place = Path("/sys/fs/cgroup") / group
    for folder in (place, *place.parents[: len(group.parts)]):
        try:
            limit = int((folder / "memory.max").read_text(encoding="ascii"))
            taken = int((folder / "memory.current").read_text(encoding="ascii"))
            files = _amount(folder / "memory.stat", "inactive_file", unit=1)  # given back when asked for
        except (OSError, ValueError):  # "max" is no number
            continue
        amounts.append(limit - taken + files)
    return max(0, min(amounts))


def _amount(path: str | Path, name: str, unit: int = 1024) -> int:
    """Return an amount in a file of the kernel's, in bytes; the first ones are in units of 1,024.

    Raises:
        ValueError: if the file does not name it.
    """
    for line in Path(path).read_text(encoding="ascii").splitlines():
        words = line.replace(":", " ").split()
        if words[:1] == [name]:
            return unit * int(words[1])
    raise ValueError(name)


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
