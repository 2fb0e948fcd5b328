"""Errors of programs as data, safe to show in a prompt or on a terminal."""

from __future__ import annotations

from hunch.core import HunchError, UsageError

MESSAGE = 2_000
"""Maximum characters of an error message."""
KILLED = "Killed"
"""Type of the error of a program that the system killed."""


class ProgramError(HunchError):
    """A program returned no value; the base class of the five errors below.

    Attributes:
        type: The error in one word, such as the name of the program's exception.
        message: At most 2,000 printable characters.
        line: Line of the program's source, from 1, if known.
        index: Index of the call given to ``map``, from 0, if known.
    """

    def __init__(self, type: str, message: str, line: int | None = None, index: int | None = None) -> None:
        self.type = printable(type, 100)
        self.message = printable(message)
        self.line = line
        self.index = index
        super().__init__(self.type, self.message, line, index)

    @property
    def depends_on_load(self) -> bool:
        """True if the load of the machine may be the reason: it ran out of time, or the system killed it."""
        return False

    def __str__(self) -> str:
        place = "" if self.line is None else f" (line {self.line})"
        return f"{self.type}: {self.message}{place}"


class ProgramTimeout(ProgramError):  # noqa: N818
    """The program exceeded its time limit and was killed."""

    @property
    def depends_on_load(self) -> bool:
        """True."""
        return True


class ProgramMemory(ProgramError):  # noqa: N818
    """The program exceeded its memory limit, or the system killed it."""

    @property
    def depends_on_load(self) -> bool:
        """True if the system killed it."""
        return self.type == KILLED


class ProgramCrash(ProgramError):  # noqa: N818
    """The program raised an exception, or its process died."""


class ProgramRefused(ProgramError):  # noqa: N818
    """The program cannot run here, or tried something that the sandbox forbids."""


class ProgramValue(ProgramError):  # noqa: N818
    """The program returned a value of the wrong type, or none that :mod:`hunch.sandbox.wire` can send."""


class ArgumentError(UsageError):
    """The arguments cannot be passed to a program: not plain, too large or too deeply nested."""


def printable(text: str, limit: int = MESSAGE) -> str:
    """Return text without unprintable characters, cut to a length."""
    return "".join(c if c.isprintable() else " " for c in text[:limit])
