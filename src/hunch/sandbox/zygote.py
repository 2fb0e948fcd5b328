"""The zygote: a warm process with NumPy imported, which forks a process for each program.

It is started as ``python zygote.py SETTINGS`` with an empty environment, holds no secrets, and never reads a
program: sources go from the caller directly to the forked process, over a separate pipe. On its own socket it
answers two requests, each an operation and a process: ``fork`` (with the pipe's end attached; returns the
process id, and a handle for signals) and ``wait`` (returns the exit code). When its caller ends, it ends with
all programs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import struct
import sys
import threading
import types
from pathlib import Path
from typing import Any

REQUEST, REPLY = struct.Struct("!ci"), struct.Struct("!i")
FORK, WAIT = b"f", b"w"
TEST = -1
"""Process number of a request for a fork that only tests its locks, without a program."""

LIBRARY = """
    __future__ _strptime abc argparse array ast asyncio atexit base64 binascii bisect bz2 calendar cmath
    codecs collections.abc colorsys concurrent.futures contextlib contextvars copy copyreg csv ctypes
    dataclasses datetime decimal difflib dis encodings.ascii encodings.hex_codec encodings.latin_1
    encodings.unicode_escape encodings.utf_16 enum errno faulthandler fnmatch fractions functools gc
    getopt getpass gettext glob graphlib gzip hashlib heapq hmac html importlib.util inspect io
    ipaddress itertools json keyword linecache locale logging lzma marshal math numbers operator
    optparse os pathlib pickle pkgutil platform pprint queue random re reprlib resource sched secrets
    select selectors shlex shutil signal stat statistics string stringprep struct symtable sys tempfile
    textwrap threading time timeit token tokenize tomllib traceback tracemalloc types typing unicodedata
    unittest.mock urllib.parse uuid warnings weakref zipfile zlib numpy.char numpy.fft
    numpy.linalg numpy.ma numpy.polynomial numpy.random numpy.rec numpy.strings numpy.testing numpy.typing
""".split()  # noqa: SIM905
"""Modules that programs may import: NumPy, and the standard library without files, network and processes.
All are imported at the start, because no file can be read later."""


def main() -> None:
    """Set up and answer requests. The caller's socket is standard input.

    Settings: folders to import from (``path``), additional ``modules``, ``memory`` in bytes.
    """
    settings = json.loads(sys.argv[1])
    control = socket.socket(fileno=os.dup(0))
    sys.path += [folder for folder in settings["path"] if folder not in sys.path]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a caller may ignore it, and that is inherited
    _our_package()
    from hunch.sandbox import child, lock, namespaces, seccomp  # after the folders to import from are set

    null = os.open(os.devnull, os.O_RDWR)
    handles = namespaces.handles()
    for module in [*LIBRARY, *settings["modules"]]:
        importlib.import_module(module)
    _warm_up()
    if _threads() > 1:
        raise RuntimeError("one of the modules starts threads, which a fork loses")
    memory = _address_space() + settings["memory"]
    walled = namespaces.available()
    if walled:
        namespaces.enter()
        namespaces.empty_root()
    for standard in range(3):
        os.dup2(null, standard)
    lock.library()
    if seccomp.supported():
        seccomp.compiled()
    child.forget_surroundings()
    gc.collect()
    gc.freeze()
    control.sendall(b"+" if walled else b"-")
    _serve(control, memory, handles)


def _our_package() -> None:
    """Make ``hunch.sandbox`` importable without running ``hunch``'s own start-up."""
    here = Path(__file__).parent
    for name, folder in (("hunch", here.parent), ("hunch.sandbox", here)):
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package


def _warm_up() -> None:
    """Do once what NumPy and Python would do in each program: load modules, allocate buffers and tables."""
    from datetime import datetime

    import numpy as np

    # ``from numpy import *`` would otherwise read modules that compile and link from files.
    np.__all__[:] = [name for name in np.__all__ if name in vars(np)]
    square = np.eye(8)
    str(np.linalg.inv(square @ square).mean(axis=0))
    np.random.default_rng(0).normal(size=8).std()
    datetime.strptime("2000-01-01", "%Y-%m-%d").strftime("%c")


def _address_space() -> int:
    """Return the bytes of address space that this process uses."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except OSError:
        return 0


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _serve(control: socket.socket, memory: int, handles: bool) -> None:
    """Answer requests until the caller is gone, then end the remaining processes."""
    living: set[int] = set()
    try:
        _answer(control, memory, handles, living)
    finally:
        for process in living:
            with contextlib.suppress(OSError):
                os.killpg(process, signal.SIGKILL)


def _answer(control: socket.socket, memory: int, handles: bool, living: set[int]) -> None:
    ended: dict[int, int] = {}
    control.settimeout(1.0)
    while True:
        _reap(living, ended)
        try:
            message, ends, _, _ = socket.recv_fds(control, REQUEST.size, 1)
        except TimeoutError:
            continue
        if not message:
            return
        operation, process = REQUEST.unpack(message)
        if operation == FORK:
            process = _fork(control, ends[0], memory, handles, test=process == TEST)
            living.add(process)
        else:
            while process in living:
                _reap(living, ended, block=process)
            control.sendall(REPLY.pack(os.waitstatus_to_exitcode(ended.pop(process, 0))))


def _reap(living: set[int], ended: dict[int, int], block: int = 0) -> None:
    """Record the processes that ended; wait for one of them if requested."""
    for process in [block] if block else list(living):
        number, status = os.waitpid(process, 0 if block else os.WNOHANG)
        if number:  # 0 if the process still runs
            living.discard(process)
            ended[process] = status
    while len(ended) > 1_000:
        del ended[next(iter(ended))]


def _fork(control: socket.socket, end: int, memory: int, handles: bool, *, test: bool) -> int:
    process = os.fork()
    if process == 0:
        _become(end, memory, test=test)
    os.close(end)
    handle = [os.pidfd_open(process)] if handles else []
    socket.send_fds(control, [REPLY.pack(process)], handle)
    for one in handle:
        os.close(one)
    return process


def _become(end: int, memory: int, *, test: bool) -> Any:
    """Go on as a program's process. Never returns."""
    try:
        os.setsid()
        os.dup2(end, 3)
        os.closerange(4, 1_024)
        from hunch.sandbox import child, lock  # after the folders to import from are set

        if test:
            lock.lock(memory)
            os.write(3, b"+" if lock.holds() else b"-")
        else:
            child.serve(memory)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
