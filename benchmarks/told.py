"""What every benchmark answers to ``--help``: its own docstring, which says how it is called."""

from __future__ import annotations

import sys


def told(what: str | None) -> None:
    """Print a benchmark's docstring and leave, where ``-h`` or ``--help`` is among the arguments."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(what)
        sys.exit()
