"""Which programs the settings of a run may start: in the command, those alone that its user named.

The settings of a run's folder may be a stranger's. A program that they name (``mcp:COMMAND``) is not started
by ``hunch report``, ``play`` or ``evaluate``, unless it stands on the command line, too.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from hunch.core import UsageError

_PROGRAMS: set[str] | None = None
"""The programs that may be started; None for all, as in a program of one's own."""


def admit(programs: Iterable[str]) -> None:
    """Allow these programs, and no others from now on."""
    global _PROGRAMS
    _PROGRAMS = set(programs)


def require(program: str, what: str) -> None:
    """Refuse a program that the settings of a run name, and not the person at the command line.

    Args:
        program: The command that starts it.
        what: What starts it, for the message.

    Raises:
        UsageError: if it is not allowed.
    """
    if _PROGRAMS is not None and program not in _PROGRAMS:
        raise UsageError(
            f"{what} starts a program, which is done only if you name it: if you trust it, add --program "
            f"{shlex.quote(program)}."
        )
