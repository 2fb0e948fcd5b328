"""The permanent locks that a program's process applies to itself before it reads the program.

In order: an unprivileged user instead of root; limits on memory, files and processes; no new privileges and
no capabilities; Landlock without any allowed file, port or other process; the filter of system calls.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from hunch.sandbox import seccomp

NOBODY = 65534
USER, ROOT = "an unprivileged user", "root without capabilities"
LIMITS, SOME_LIMITS = "limits on memory, files and processes", "limits on files and processes, none on memory"
NO_PRIVILEGES, LANDLOCK, FILTER = "no new privileges", "Landlock", "filter of system calls"
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_CAPABILITIES_3 = 0x20080522
# Landlock's system calls have these numbers on every architecture.
_CREATE_RULESET, _RESTRICT_SELF, _ASK_VERSION = 444, 446, 1


@cache
def library() -> ctypes.CDLL:
    """Return the C library."""
    return ctypes.CDLL(None, use_errno=True)


def libc(call: str, *arguments: Any) -> int:
    """Call a function of the C library.

    Raises:
        OSError: if the result is negative.
    """
    result: int = getattr(library(), call)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")
    return result


def lock(memory: int) -> list[str]:
    """Lock this process and return the active locks, in words.

    Locks that the system does not support are left out; the failure of a supported lock is an error.

    Args:
        memory: Limit of the process's address space in bytes.

    Raises:
        OSError: if a lock fails.
    """
    locks = [_leave_root() if os.geteuid() == 0 else USER, _limit(memory)]
    if not sys.platform.startswith("linux"):
        return locks
    libc("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # only now: a change of user clears it
    libc("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _drop_capabilities()
    locks.append(NO_PRIVILEGES)
    if version := landlock_version():
        _landlock(version)
        locks.append(LANDLOCK)
    if seccomp.restrict():
        locks.append(FILTER)
    return locks


def holds() -> bool:
    """Try to use files, sockets, processes and signals; return whether the kernel refuses all attempts."""
    attempts: list[Callable[[], Any]] = [
        lambda: os.open("/", os.O_RDONLY),
        lambda: os.stat("/"),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        lambda: socket.socketpair(),
        lambda: os.pipe(),
        lambda: os.fork() or os._exit(0),
        lambda: os.kill(os.getppid(), 0),
        lambda: os.execv(sys.executable, [sys.executable, "-c", ""]),
    ]
    return all(map(_refused, attempts))


def _refused(attempt: Callable[[], Any]) -> bool:
    try:
        attempt()
    except OSError as error:
        return error.errno == errno.EPERM
    return False


def landlock_version() -> int:
    """Return the version of the kernel's Landlock interface; 0 if there is none."""
    try:
        return libc("syscall", _CREATE_RULESET, None, 0, _ASK_VERSION)
    except OSError:
        return 0


def _leave_root() -> str:
    """Become an unprivileged user, or, where a container forbids it, stay root; capabilities go later."""
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    except OSError:
        return ROOT
    return USER


def _limit(memory: int) -> str:
    # A core of 1 byte is none, for programs that collect cores too; to those 0 means no limit.
    limits = {"RLIMIT_AS": memory, "RLIMIT_CORE": 1, "RLIMIT_FSIZE": 0, "RLIMIT_NOFILE": 8, "RLIMIT_NPROC": 0}
    if not sys.platform.startswith("linux"):
        del limits["RLIMIT_AS"]  # macOS has the name, but not the limit
    for name, value in limits.items():
        _, hard = resource.getrlimit(getattr(resource, name))
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(getattr(resource, name), (value, value))
    return LIMITS if "RLIMIT_AS" in limits else SOME_LIMITS


def _drop_capabilities() -> None:
    header = struct.pack("=Ii", _CAPABILITIES_3, 0)
    libc("capset", header, bytes(24))


def _landlock(version: int) -> None:
    """Restrict this process to no file, no TCP port, and no process but itself."""
    files = 1 << 13
    files <<= (version >= 2) + (version >= 3) + (version >= 5)
    ports = 3 if version >= 4 else 0
    scopes = 3 if version >= 6 else 0
    size = 8 if version < 4 else 16 if version < 6 else 24
    handled = struct.pack("=QQQ", files - 1, ports, scopes)[:size]
    rules = libc("syscall", _CREATE_RULESET, handled, ctypes.c_size_t(size), 0)
    try:
        libc("syscall", _RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)
