"""The sandbox for programs of design problems: one per process, started at first use."""

from __future__ import annotations

from functools import cache

from hunch.sandbox import Sandbox

TOTAL = 300.0
"""Time limit in seconds for all calls of a program in one trial; large, so that no program fails because the
machine is busy."""


@cache
def box(seconds: float = 5.0, memory_mb: int = 512) -> Sandbox:
    """Return the sandbox of this process with these limits.

    Raises:
        UsageError: if this machine cannot isolate programs.
    """
    return Sandbox(seconds=seconds, memory_mb=memory_mb)
