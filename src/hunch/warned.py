"""Prints this library's warnings as sentences."""

import sys
import warnings
from contextlib import suppress
from typing import Any

from hunch.core import HunchWarning
from hunch.printable import printable

_SHOW = warnings.showwarning


def warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print a warning of this library as a sentence, others unchanged; replaces ``warnings.showwarning``."""
    if not issubclass(category, HunchWarning):
        return _SHOW(message, category, *place, **more)
    with suppress(OSError):  # nobody may be there to read it, which is no reason to stop
        print(printable(f"hunch: {message}"), file=sys.stderr)
