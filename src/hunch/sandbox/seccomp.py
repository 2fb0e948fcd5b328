"""The filter of system calls: a locked program may make fewer than forty; all others fail with EPERM.

None of these opens a file, makes a socket, starts a process or thread, or sends a signal. A program can only
use what it has when it is locked: a pipe to its caller, and /dev/null.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from functools import cache
from typing import Any

# Name: its number on x86-64 and on aarch64. Frequent ones first: the filter is read from the top.
ALLOWED: dict[str, tuple[int, int]] = {
    "read": (0, 63),
    "write": (1, 64),
    "futex": (202, 98),
    "brk": (12, 214),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "clock_gettime": (228, 113),
    "getrandom": (318, 278),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "times": (100, 153),
    "getrusage": (98, 165),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
# Allowed as long as the memory is not to be executed: their third argument has the bit for that.
_NOT_EXECUTABLE: dict[str, tuple[int, int]] = {"mmap": (9, 222), "mprotect": (10, 226)}

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _THIRD_ARGUMENT = 0, 4, 32
_KILL, _ALLOW, _REFUSE = 0x80000000, 0x7FFF0000, 0x00050000 | errno.EPERM
_PROT_EXEC = 0x4
_X32 = 0x40000000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


def supported() -> bool:
    """Return whether the filter supports this processor."""
    return platform.machine() in _AUDIT


def rules(machine: str) -> list[tuple[int, int, int, int]]:
    """Return the filter as instructions of classic BPF: code, jump if true, jump if false, operand."""
    column = list(_AUDIT).index(machine)
    filter = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _AUDIT[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),  # x32's numbers would mean other calls
        (_RETURN, 0, 0, _KILL),
    ]
    for numbers in _NOT_EXECUTABLE.values():
        filter += [
            (_EQUAL, 0, 4, numbers[column]),
            (_LOAD, 0, 0, _THIRD_ARGUMENT),
            (_ANY_BIT, 0, 1, _PROT_EXEC),
            (_RETURN, 0, 0, _REFUSE),
            (_RETURN, 0, 0, _ALLOW),
        ]
    for numbers in ALLOWED.values():
        filter += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ALLOW)]
    return [*filter, (_RETURN, 0, 0, _REFUSE)]


class _Program(ctypes.Structure):
    """The kernel's ``sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


@cache
def compiled() -> tuple[ctypes.CDLL, _Program, Any]:
    """Return the C library, the filter for this processor, and the memory that holds the filter.

    A zygote calls this before its processes do. Call it only where the filter is supported.
    """
    program = rules(platform.machine())
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    header = _Program(len(program), ctypes.cast(code, ctypes.c_void_p))
    return ctypes.CDLL(None, use_errno=True), header, code


def restrict() -> bool:
    """Apply the filter to this process permanently. Needs ``no_new_privs``.

    Returns:
        True if the filter is active; False if the kernel has no filters, or this processor is not supported.

    Raises:
        OSError: if the kernel refuses.
    """
    if not supported():
        return False
    libc, header, _ = compiled()
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(header), 0, 0) == 0:
        return True
    if ctypes.get_errno() in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(ctypes.get_errno(), "the filter of system calls was refused")
