"""Calls environments together, one after the other; :mod:`hunch.rl.workers` does it in worker processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from hunch.core import UsageError

if TYPE_CHECKING:
    from hunch.rl.workers import Workers

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


def fleet(envs: Sequence[Any], processes: int = 0) -> Fleet | Workers:
    """Return environments that are called here, or in worker processes if a step is slow.

    The number of processes affects only the speed.

    Args:
        envs: The environments. With processes each gets a copy of its share, so they must be picklable.
        processes: Number of worker processes; 0 calls them here.

    Raises:
        UsageError: if there is no environment, ``processes`` is out of range, or one cannot be pickled.
        HunchError: if a worker process dies, here or later.
    """
    if not envs or not 0 <= processes <= len(envs):
        raise UsageError(
            f"{len(envs)} environments cannot be distributed over {processes} processes: each process "
            "needs at least one environment."
        )
    if not processes:
        return Fleet(envs)
    from hunch.rl.workers import Workers

    return Workers(envs, processes)
