"""Calls environments together: here, one after the other, or in worker processes if a step is slow.

The number of processes affects only the speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from hunch.core import UsageError

if TYPE_CHECKING:
    from hunch.rl.workers import Worker

Call: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of an environment, with its arguments."""


class Fleet:
    """Environments that are called together.

    Args:
        envs: The environments. With processes each gets a copy of its share, so they must be picklable.
        processes: Number of worker processes; 0 calls them here, one after the other.

    Raises:
        UsageError: if there is no environment, ``processes`` is out of range, or one cannot be pickled.
        HunchError: if a worker process dies, here or later.
    """

    def __init__(self, envs: Sequence[Any], processes: int = 0) -> None:
        if not envs or not 0 <= processes <= len(envs):
            raise UsageError(
                f"{len(envs)} environments cannot be distributed over {processes} processes: each process "
                "needs at least one environment."
            )
        self.envs = list(envs)
        self.workers: list[Worker] = []
        try:
            if processes:
                from hunch.rl import workers

                self.workers = [workers.Worker(self.envs[i::processes]) for i in range(processes)]
            _raise_first([worker.receive() for worker in self.workers])
        except BaseException:
            self.close()
            raise

    def ask(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Call one method of some environments, given by index; workers run in parallel.

        An error in an environment is raised here with its own type, after all have answered.
        """
        if not self.workers:
            return {
                i: getattr(self.envs[i], verb)(*given, **options)
                for i, (verb, given, options) in calls.items()
            }
        n = len(self.workers)
        shares = [{i // n: call for i, call in calls.items() if i % n == number} for number in range(n)]
        asked = [(number, share) for number, share in enumerate(shares) if share]
        for number, share in asked:
            self.workers[number].send(share)
        answers = [self.workers[number].receive() for number, _ in asked]
        _raise_first(answers)
        found = {
            i * n + k: answer for (k, _), own in zip(asked, answers, strict=True) for i, answer in own.items()
        }
        return {i: found[i] for i in calls}

    def close(self) -> None:
        """Stop the workers; environments of this process stay open."""
        workers, self.workers = self.workers, []
        for worker in workers:
            worker.close()


def _raise_first(answers: Sequence[Any]) -> None:
    """Raise the first error after all workers have answered, so that no answer is left in a pipe."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
