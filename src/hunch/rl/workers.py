"""Calls several environments together: one after the other, or in worker processes if their steps are slow.

A program that uses worker processes needs
``if __name__ == "__main__":`` around its code, as usual for processes in Python.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from hunch.core import HunchError, UsageError

PATIENCE = 5.0
"""Seconds in which a worker must exit before it is killed."""
Call: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
"""Name of a method of an environment, with its arguments."""


class Fleet:
    """Several environments that are called together, one after the other in this process."""

    def __init__(self, envs: Sequence[Any]) -> None:
        self.envs = list(envs)

    def ask(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Call one method of each given environment, by index; return the results. Errors pass unchanged."""
        answers = {}
        for i, (method, arguments, options) in calls.items():
            answers[i] = getattr(self.envs[i], method)(*arguments, **options)
        return answers

    def close(self) -> None:
        """Do nothing: there are no worker processes here, and the environments stay open."""


@contextmanager
def without_main() -> Iterator[None]:
    """Let processes that start in this block ignore a main program that is not a file.

    A main program from standard input has the name of a file that does not exist.
    """
    main: Any = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is None or os.path.exists(file):
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = file


class Worker:
    """A process with some of the environments; it ends with this process."""

    def __init__(self, envs: Sequence[Any]) -> None:
        import cloudpickle  # type: ignore[import-untyped]

        try:
            packed = cloudpickle.dumps(list(envs))
        except Exception as error:
            raise UsageError(f"The environments cannot be sent to worker processes: {error}.") from error
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of torch's threads
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=_work, args=(end, packed), daemon=True)
        with without_main():
            self.process.start()
        end.close()

    def send(self, share: Mapping[int, Any]) -> None:
        """Send calls for some of the environments."""
        with suppress(OSError):  # the worker is dead, which receive reports
            self.pipe.send(share)

    def receive(self) -> Any:
        """Return the answers by index, or an error."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(PATIENCE)
            return HunchError(
                f"A worker process died (exit code {self.process.exitcode}). If it died at the start: a "
                "program that uses processes needs 'if __name__ == \"__main__\":' around its code."
            )

    def close(self) -> None:
        """End the worker process."""
        self.pipe.close()  # the worker exits when its pipe is closed
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class Workers(Fleet):
    """Environments in worker processes, which are called in parallel."""

    def __init__(self, envs: Sequence[Any], processes: int) -> None:
        super().__init__(envs)
        if not 0 < processes <= len(envs):
            raise UsageError(
                f"{len(envs)} environments cannot be distributed over {processes} processes: each process "
                "needs at least one environment."
            )
        self.workers: list[Worker] = []
        try:
            self.workers = [Worker(self.envs[i::processes]) for i in range(processes)]
            _raise_first([worker.receive() for worker in self.workers])
        except BaseException:
            self.close()
            raise

    def ask(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Call one method of each given environment; errors are raised after all have answered."""
        n = len(self.workers)
        # Worker k has the environments k, k + n, k + 2 n, ..., which it numbers 0, 1, 2, ...
        shares: dict[int, dict[int, Call]] = {}
        for i, call in calls.items():
            shares.setdefault(i % n, {})[i // n] = call
        asked = sorted(shares)
        for k in asked:
            self.workers[k].send(shares[k])
        answers = [self.workers[k].receive() for k in asked]
        _raise_first(answers)
        by_environment = {}
        for k, share in zip(asked, answers, strict=True):
            for place, answer in share.items():
                by_environment[place * n + k] = answer
        return {i: by_environment[i] for i in calls}

    def close(self) -> None:
        """Stop the worker processes."""
        workers, self.workers = self.workers, []
        for worker in workers:
            worker.close()


def _raise_first(answers: Sequence[Any]) -> None:
    """Raise the first error after all workers have answered, so that no answer is left in a pipe."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer


def _work(pipe: Connection, packed: bytes) -> None:
    """Serve a share of the environments until the pipe is closed. The first answer says that it is ready."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C and a closed terminal are the parent's business
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        fleet = Fleet(pickle.loads(packed))
        pipe.send(None)
    except Exception as error:
        return pipe.send(_portable(error))
    while True:
        try:
            share = pipe.recv()
        except (EOFError, OSError):
            return None
        try:
            pipe.send(fleet.ask(share))
        except Exception as error:
            pipe.send(_portable(error))


def _portable(error: Exception) -> Exception:
    """Return the error with its traceback as a note, or only its message if it cannot be pickled."""
    note = f"In a worker process:\n{''.join(traceback.format_exception(error))}"
    try:
        copied: Exception = pickle.loads(pickle.dumps(error))
    except Exception:
        copied = HunchError(f"{type(error).__name__}: {error}")
    copied.add_note(note)
    return copied
