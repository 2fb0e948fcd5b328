"""Calls environments together, one after the other; :mod:`hunch.rl.workers` does it in worker processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Call: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of an environment, with its arguments."""


class Fleet:
    """Environments that are called together."""

    def __init__(self, envs: Sequence[Any]) -> None:
        self.envs = list(envs)

    def ask(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Call one method of some environments, given by index; an error passes with its own type."""
        return {
            i: getattr(self.envs[i], verb)(*given, **options) for i, (verb, given, options) in calls.items()
        }

    def close(self) -> None:
        """Stop what runs beside this process; the environments stay open."""
