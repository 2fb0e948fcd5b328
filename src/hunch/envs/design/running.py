"""The sandbox for programs of design problems: one per process, started at first use."""

from __future__ import annotations

import hashlib
import inspect
from functools import cache
from types import ModuleType

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


@cache
def fingerprint(*modules: ModuleType) -> str:
    """Return a hash of the code of modules, so that trials are run again when the code changes."""
    code = "".join(inspect.getsource(module) for module in modules)
    return hashlib.sha256(code.encode()).hexdigest()[:16]
