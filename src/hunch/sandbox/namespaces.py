"""Separate namespaces for the zygote and all programs: processes, network, mounts, users.

Inside there are no other processes, no network device, and an empty read-only file system. The kernel
ends all processes in them when the zygote ends. They are a second barrier; the filter of system calls is the
first. Default containers and some distributions forbid them; ``Sandbox.isolation`` shows this.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

from hunch.sandbox.lock import FILTER, libc, lock

_NEW_MOUNTS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_MS_RDONLY_NOSUID_NODEV_NOEXEC, _MS_PRIVATE_ALL, _MNT_DETACH = 0xF, 0x44000, 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_PR_SET_PDEATHSIG = 1


def available() -> bool:
    """Return whether this process can use all namespaces, by trying it in a forked process.

    Without a filter of system calls, namespaces are not used, because the caller could not end all children.
    """
    if not sys.platform.startswith("linux") or os.uname().machine not in _PIVOT_ROOT:
        return False
    if not handles():  # the caller could not signal what is inside otherwise
        return False
    if trial := os.fork():
        return os.waitpid(trial, 0)[1] == 0
    try:
        enter()
        empty_root()
        os._exit(0 if FILTER in lock(sys.maxsize) else 1)
    except BaseException:
        os._exit(1)


def handles() -> bool:
    """Return whether processes can be signalled by file descriptors: since Linux 5.3, unless forbidden."""
    try:
        handle = os.pidfd_open(os.getpid())
    except (AttributeError, OSError):
        return False
    try:
        signal.pidfd_send_signal(handle, 0)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def enter() -> None:
    """Continue in new namespaces, as their first process. The outer process waits, and ends with it.

    Raises:
        OSError: if the kernel refuses.
    """
    user, group = os.geteuid(), os.getegid()
    spaces = _NEW_MOUNTS | _NEW_UTS | _NEW_IPC | _NEW_PIDS | _NEW_NET
    libc("unshare", ctypes.c_int(spaces if user == 0 else spaces | _NEW_USER))
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny", encoding="utf-8")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="utf-8")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="utf-8")
    if first := os.fork():
        os.closerange(0, 1024)
        status = os.waitpid(first, 0)[1]
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    libc("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def empty_root() -> None:
    """Replace the file system by an empty, read-only one. Open files and imported modules remain.

    Raises:
        OSError: if the kernel refuses.
    """
    place = str(Path(__file__).parent).encode()
    libc("mount", None, b"/", None, ctypes.c_ulong(_MS_PRIVATE_ALL), None)
    libc("mount", b"none", place, b"tmpfs", ctypes.c_ulong(_MS_RDONLY_NOSUID_NODEV_NOEXEC), b"size=4k")
    os.chdir(place)
    libc("syscall", _PIVOT_ROOT[os.uname().machine], b".", b".")
    libc("umount2", b".", _MNT_DETACH)
    os.chdir("/")
