"""Calls several environments one after the other; :mod:`hunch.rl.workers` calls them in processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Call: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
"""Name of a method of an environment, with its arguments."""


class Fleet:
    """Several environments that are called together."""

    def __init__(self, envs: Sequence[Any]) -> None:
        self.envs = list(envs)

    def ask(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Call one method of each given environment, by index; return the results. Errors pass unchanged."""
        return {
            i: getattr(self.envs[i], verb)(*given, **options) for i, (verb, given, options) in calls.items()
        }

    def close(self) -> None:
        """Do nothing: there are no worker processes here, and the environments stay open."""
