"""The published systems, one file each, grouped by the role that the language model fills.

A method is one file with a dataclass of settings, an agent class and a :class:`Method`, ``METHOD``. The file
has the name of the method. No file loads torch when it is imported, so lists of methods and help are quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hunch.methods.method import Method as Method
from hunch.methods.registry import OURS, class_called, classes, find, names, of, reads_raw, registered

if TYPE_CHECKING:
    from hunch.methods.checker import AgentError, check
    from hunch.methods.classes import *  # noqa: F403 - a stub, for type checkers

    METHODS: dict[str, Method]

__all__ = ["METHODS", "AgentError", "Method", "check", "find", "names", "of", "reads_raw", "registered"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(cls.__name__ for cls in classes(*OURS))})


if not TYPE_CHECKING:  # so that a wrong name is an error of types

    def __getattr__(name: str) -> Any:
        """Return what is imported at first use: all methods, their classes, the checker."""
        if name == "METHODS":
            return registered()
        if name in ("check", "AgentError"):
            return getattr(import_module("hunch.methods.checker"), name)
        return class_called(name)
