"""The audition: measures which role a model should fill, before any money is spent on runs.

``hunch.audition("minilm")`` is the Python form of ``hunch audition --lm minilm``. This package is callable,
because its only function has the same name.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from hunch.audition.hearing import audition


class _Callable(ModuleType):
    def __call__(self, *given: Any, **named: Any) -> Any:
        return audition(*given, **named)


sys.modules[__name__].__class__ = _Callable
