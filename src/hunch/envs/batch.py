"""Many copies of a text environment stepped together, in worker processes where one is slow."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Self

from hunch.core import HunchError, UsageError
from hunch.envs import make
from hunch.envs.base import action_name

PATIENCE = 5.0
"""Seconds that a worker gets to leave before it is ended."""

Stepped = tuple[list[str], list[float], list[bool], list[bool], list[dict[str, Any]]]


class Batch:
    """``n`` copies of a text environment; texts stay texts, and infos a list of dictionaries.

    An episode that ends is begun anew in the same step: ``observations[i]`` and ``infos[i]`` are then the
    first of the next episode, and ``infos[i]["final_obs"]`` and ``infos[i]["final_info"]`` the last of the
    one that ended, as with Gymnasium's ``AutoresetMode.SAME_STEP``.

        with Batch("hunch/Household-Pick-v0", 8, processes=2, games=4) as batch:
            observations, infos = batch.reset(seed=0)
            observations, rewards, terminated, truncated, infos = batch.step([0] * 8)

    The number of processes changes nothing but the time. They pay where a step takes a millisecond or more.
    A program that asks for them needs ``if __name__ == "__main__":`` around what it does, and an environment
    of your own is named ``"module:id"``, so that the workers can import it.

    Args:
        id: As for :func:`hunch.envs.make`.
        n: How many environments.
        processes: How many worker processes share them; 0 steps them here, one after the other.
        **options: As for :func:`hunch.envs.make`.

    Raises:
        UsageError: if ``n`` or ``processes`` is out of range, or as :func:`hunch.envs.make` does.
        HunchError: if a worker process dies, here or later.
    """

    def __init__(self, id: str, n: int, /, *, processes: int = 0, **options: Any) -> None:
        if n < 1 or not 0 <= processes <= n:
            raise UsageError(
                f"A batch needs 1 or more environments and 0 to n processes, not {n} and {processes}."
            )
        self.n = n
        self._infos: list[dict[str, Any]] = []
        self._shares: list[_Here | _Worker] = []
        shares = max(processes, 1)
        sizes = [n // shares + (i < n % shares) for i in range(shares)]
        try:
            for size in sizes:
                self._shares.append((_Worker if processes else _Here)(id, size, options))
            self._answers()
        except BaseException:
            self.close()
            raise

    def reset(self, seed: int | None = None) -> tuple[list[str], list[dict[str, Any]]]:
        """Begin an episode in every environment; environment i with ``seed + i``.

        Later episodes go on from there: the same seed and actions give the same batch.

        Returns:
            Observations and infos.

        Raises:
            UsageError: if the batch is closed.
        """
        seeds = [None if seed is None else seed + i for i in range(self.n)]
        self._infos = []
        observations, infos = map(list, zip(*self._ask("reset", seeds), strict=True))
        self._infos = list(infos)
        return observations, infos

    def step(self, actions: Sequence[str | int]) -> Stepped:
        """Take an action in every environment, each its string or its index.

        All actions are looked at first: if one is inadmissible, no environment has moved. An error inside an
        environment is raised here with its own type, and the batch needs ``reset`` after it.

        Raises:
            InadmissibleActionError: if an action is not among those of its environment.
            UsageError: on another number of actions, before ``reset``, and if the batch is closed.
        """
        if not self._infos:
            raise UsageError("No episode is running: call reset before step.")
        if len(actions) != self.n:
            raise UsageError(f"The batch holds {self.n} environments, and {len(actions)} actions came.")
        chosen = [
            action_name(action, info["actions"]) for action, info in zip(actions, self._infos, strict=True)
        ]
        self._infos = []
        rows = self._ask("step", chosen)
        observations, rewards, terminated, truncated, infos = map(list, zip(*rows, strict=True))
        self._infos = list(infos)
        return observations, rewards, terminated, truncated, infos

    def close(self) -> None:
        """Close the environments and end the workers."""
        shares, self._shares, self._infos = self._shares, [], []
        for share in shares:
            share.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(self, verb: str, arguments: Sequence[Any]) -> list[Any]:
        """One row an environment; the shares work at the same time."""
        if not self._shares:
            raise UsageError("The batch is closed.")
        first = 0
        for share in self._shares:
            share.send(verb, arguments[first : first + share.n])
            first += share.n
        return [row for answer in self._answers() for row in answer]

    def _answers(self) -> list[Any]:
        """Hear every share, and only then raise what went wrong, so that none is left half heard."""
        try:
            answers = [share.receive() for share in self._shares]
        except KeyboardInterrupt:
            self.close()
            raise
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers


class _Here:
    """Environments in this process."""

    def __init__(self, id: str, n: int, options: Mapping[str, Any]) -> None:
        self.n = n
        self.envs = [make(id, **options) for _ in range(n)]
        self.answer: Any = None

    def send(self, verb: str, arguments: Sequence[Any]) -> None:
        try:
            self.answer = [getattr(self, f"_{verb}")(i, x) for i, x in enumerate(arguments)]
        except Exception as error:
            self.answer = error

    def receive(self) -> Any:
        return self.answer

    def close(self) -> None:
        for env in self.envs:
            env.close()

    def _reset(self, i: int, seed: int | None) -> tuple[str, dict[str, Any]]:
        return self.envs[i].reset(seed=seed)

    def _step(self, i: int, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.envs[i].step(action)
        if terminated or truncated:
            final = {"final_obs": observation, "final_info": info}
            observation, info = self.envs[i].reset()
            info = {**info, **final}
        return observation, float(reward), terminated, truncated, info


class _Worker:
    """Environments in a process of their own, which ends with this one."""

    def __init__(self, id: str, n: int, options: Mapping[str, Any]) -> None:
        self.n = n
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of torch's threads
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=_work, args=(end, id, n, dict(options)), daemon=True)
        self.process.start()
        end.close()

    def send(self, verb: str, arguments: Sequence[Any]) -> None:
        with suppress(OSError):  # of a dead worker; receive says so
            self.pipe.send((verb, arguments))

    def receive(self) -> Any:
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(PATIENCE)
            return HunchError(
                f"A worker process died (exit code {self.process.exitcode}). If that was at the start: a "
                "program that uses processes needs 'if __name__ == \"__main__\":' around what it does."
            )

    def close(self) -> None:
        self.pipe.close()  # the worker leaves at the end of its pipe
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _work(pipe: Connection, id: str, n: int, options: dict[str, Any]) -> None:
    """Serve a share of the environments until the pipe ends. The first answer says that they are made."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    try:
        share = _Here(id, n, options)
    except Exception as error:
        return pipe.send(_portable(error))
    pipe.send(None)
    while True:
        try:
            verb, arguments = pipe.recv()
        except (EOFError, OSError):
            return share.close()
        share.send(verb, arguments)
        answer = share.receive()
        pipe.send(_portable(answer) if isinstance(answer, Exception) else answer)


def _portable(error: Exception) -> Exception:
    """The error with its traceback as a note, or what it says where it cannot be sent."""
    note = f"In a worker process:\n{''.join(traceback.format_exception(error))}"
    try:
        copied: Exception = pickle.loads(pickle.dumps(error))
    except Exception:
        copied = HunchError(f"{type(error).__name__}: {error}")
    copied.add_note(note)
    return copied
