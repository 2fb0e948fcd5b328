"""Runs a Python file on a poorer machine: ``python poorer.py WHAT,WHAT FILE``, each what a system may lack.

``namespaces`` is forbidden as in default containers, ``landlock`` is missing as in old kernels, and so is
``filters``; ``sessions``, ``handles`` (signals by file descriptor) and ``signals`` are forbidden. A filter of
system calls of our own stands in for the system.
"""

import ctypes
import errno
import platform
import runpy
import struct
import sys

LOAD, EQUAL, RETURN, ALLOW, ERROR = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
NUMBER, FIRST_ARGUMENT = 0, 16
SETSID, KILL = {"x86_64": (112, 62), "aarch64": (157, 129)}[platform.machine()]
PIDFD_SEND_SIGNAL = 424
SECCOMP, UNSHARE, PRCTL = {"x86_64": (317, 272, 157), "aarch64": (277, 97, 167)}[platform.machine()]
LANDLOCK = 444

LACKS = {
    "namespaces": [(EQUAL, 0, 1, UNSHARE), (RETURN, 0, 0, ERROR | errno.EPERM)],
    "sessions": [(EQUAL, 0, 1, SETSID), (RETURN, 0, 0, ERROR | errno.EPERM)],
    "handles": [(EQUAL, 0, 1, PIDFD_SEND_SIGNAL), (RETURN, 0, 0, ERROR | errno.EPERM)],
    "signals": [(EQUAL, 0, 1, KILL), (RETURN, 0, 0, ERROR | errno.EPERM)],
    "landlock": [(EQUAL, 0, 1, LANDLOCK), (RETURN, 0, 0, ERROR | errno.ENOSYS)],
    "filters": [
        (EQUAL, 0, 1, SECCOMP),
        (RETURN, 0, 0, ERROR | errno.ENOSYS),
        (EQUAL, 0, 4, PRCTL),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (EQUAL, 0, 1, 22),
        (RETURN, 0, 0, ERROR | errno.EINVAL),
        (RETURN, 0, 0, ALLOW),
    ],
}


def lack(what):
    """Take away what the names stand for."""
    lines = [(LOAD, 0, 0, NUMBER), *(line for name in what for line in LACKS[name]), (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(lines), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot make the machine poorer")


if __name__ == "__main__":
    lack(sys.argv[1].split(","))
    sys.argv[:] = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
