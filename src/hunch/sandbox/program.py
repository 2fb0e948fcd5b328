"""The caller's view of a program in a sandbox."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, Self

from hunch.core import UsageError
from hunch.numbers import number
from hunch.sandbox import wire
from hunch.sandbox.errors import ArgumentError, ProgramError, ProgramRefused, ProgramTimeout, ProgramValue
from hunch.sandbox.process import Process

_TOGETHER = 1_000
_SOURCE = 2**20


class Home(Protocol):
    """The method of a sandbox that a program needs."""

    seconds: float

    def start(self) -> Process:
        """Return a new process for the program."""
        ...


class Program:
    """A function of an untrusted program: call it, or use ``map``. Made by :meth:`Sandbox.load`.

    After an exception of the program, its process continues. After an error that ended the process, the next
    call restarts it from its source, without its state; a fork of this process starts a copy in the same
    way. Calls from several threads run one after the other.
    """

    def __init__(
        self,
        box: Home,
        source: str,
        function: str,
        returns: type | None,
        fresh: bool,
        finite: bool,
        total: float,
    ) -> None:
        self.source, self.function = source, function
        self._box, self._returns, self._fresh, self._finite = box, returns, fresh, finite
        self._total, self._spent = total, 0.0
        self._turn = threading.Lock()
        self._process: Process | None = None
        self._load()
        self._probed = False
        self._closed = False
        FORKED.add(self)

    def __call__(self, *args: Any) -> Any:
        """Call the function with plain values.

        Raises:
            ProgramError: if it does not return a value of the required type.
            UsageError: if an argument cannot be passed.
            HunchError: if the sandbox was killed or is closed.
        """
        return self._run([args])[0]

    def map(self, calls: Sequence[Sequence[Any]]) -> list[Any]:
        """Call the function with each tuple of arguments; about ten times as fast as single calls.

        Requests hold up to 1,000 calls with ``seconds`` each. An error in one call fails the whole batch, and
        has the ``index`` of the failed call.

        Raises:
            ProgramError, UsageError, HunchError: as for a call.
        """
        if not all(isinstance(call, tuple | list) for call in calls):
            raise UsageError("map needs a list of tuples, each with the arguments of one call.")
        return self._run(calls) if len(calls) else []

    def renew(self) -> None:
        """Begin to count the time of all calls together, which ``total`` limits, anew."""
        self._spent = 0.0

    def close(self) -> None:
        """End the program's process. May be called twice."""
        with self._turn:
            self._closed = True
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, calls: Sequence[Sequence[Any]]) -> list[Any]:
        start = time.monotonic()
        batches = list(_batches(calls))
        sending = time.monotonic() - start
        with self._turn:
            start = time.monotonic() - sending  # another thread's calls are counted there
            if self._closed:
                raise UsageError("This program is closed: load it again.")
            try:
                trees: list[Any] = []
                values: list[Any] = []
                with closing(self._answers(batches, start)) as answers:
                    for batch_trees in answers:
                        until = time.monotonic() + self._box.seconds
                        values += [
                            self._value(tree, len(trees) + i, until) for i, tree in enumerate(batch_trees)
                        ]
                        trees += batch_trees
                if self._fresh and not self._probed and len(calls) > 1:
                    self._probe(calls, trees, start)
                return values
            finally:
                self._spent += time.monotonic() - start

    def _answers(self, batches: Iterable[_Batch], since: float) -> Generator[list[Any]]:
        """Yield the trees of the values answer by answer; an answer holds only as many as fit.

        Args:
            batches: The calls.
            since: When these calls began, on the monotonic clock.
        """
        done = 0
        try:
            for batch in batches:
                start, tree, rest = time.monotonic(), batch.tree, batch.calls
                while len(rest):
                    self._require_time(time.monotonic() - since if done else 0.0)
                    used = 0.0 if rest is batch.calls else time.monotonic() - start
                    batch_trees = self._asked(tree, len(rest), done, used)
                    yield batch_trees
                    done, rest = done + len(batch_trees), rest[len(batch_trees) :]
                    tree = _tree(rest) if len(rest) else None
        finally:
            if self._fresh:
                self._end()

    def _require_time(self, used: float) -> None:
        """Check that there is time left for all calls together.

        Args:
            used: Seconds that the present calls have taken.

        Raises:
            ProgramTimeout: if there is none.
        """
        if self._spent + used > self._total:
            self._end()
            raise ProgramTimeout("Timeout", f"its calls took {self._total:g} seconds together")

    def _asked(self, calls: Any, n: int, before: int, used: float) -> list[Any]:
        """Return the trees of the first values of n calls, at least one."""
        try:
            answer = self._answer({"calls": calls, "alike": self._fresh}, used)
        except ProgramError as error:
            if error.index is not None:
                error = type(error)(error.type, error.message, error.line, error.index + before)
            raise error from None
        values = answer.get("values")
        if type(values) is not list or not 1 <= len(values) <= n:
            raise ProgramValue("Value", "it did not return one value for each call")
        return values

    def _answer(self, request: dict[str, Any], used: float) -> dict[str, Any]:
        """Ask the process, or a new one, which gets the source with the request."""
        if self._process is None or not self._process.alive:
            return self._load(request)
        return self._process.ask(request, self._box.seconds, used)

    def _probe(self, calls: Sequence[Sequence[Any]], answers: list[Any], since: float) -> None:
        """Run a batch again in reverse order: a function of its arguments only gives the same values."""
        try:
            again = list(chain.from_iterable(self._answers(_batches(calls[::-1]), since)))[::-1]
        except ProgramTimeout:  # says nothing about its values: the machine may be busy
            raise
        except ProgramError:
            again = []
        if repr(again) != repr(answers):  # tells 1 from 1.0, and takes nan for nan
            why = "its value depends on earlier calls, on its own random numbers, or on time"
            raise ProgramValue("State", why)
        self._probed = True

    def _value(self, tree: Any, index: int, until: float) -> Any:
        try:
            value = wire.from_tree(tree, finite=self._finite, until=until)
        except wire.WireError as error:
            raise ProgramValue("Value", f"it returned {error}", index=index) from None
        except TimeoutError:
            why = f"its value cannot be read within {self._box.seconds:g} seconds"
            raise ProgramTimeout("Timeout", why, index=index) from None
        if self._returns is float:
            as_float = number(value, finite=self._finite)
            if as_float is not None:
                return as_float
        if self._returns is not None and type(value) is not self._returns:
            wanted, got = self._returns.__name__, type(value).__name__
            raise ProgramValue("Type", f"it returned {got}, not {wanted}", index=index)
        return value

    def _load(self, request: dict[str, Any] | None = None) -> dict[str, Any]:
        """Give the source to a new process, with a first request if there is one; returns its answer."""
        if len(self.source) > _SOURCE:
            raise ProgramRefused("Source", f"a source of {len(self.source):,} characters")
        process = self._box.start()
        loading = {"source": self.source, "function": self.function, **(request or {})}
        try:
            answer = process.ask(loading, self._box.seconds * (2 if request else 1))
        except ProgramError as error:
            if error.index is None:  # it did not load
                process.end()
            raise
        except BaseException:
            process.end()
            raise
        finally:
            self._process = process
        return answer

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None

    def _forked(self) -> None:
        """In a fork of the caller: the process belongs to the parent."""
        self._turn = threading.Lock()
        self._end()


@dataclass(frozen=True)
class _Batch:
    """Calls of one request, and their tree."""

    calls: Sequence[Sequence[Any]]
    tree: Any


def _batches(calls: Sequence[Sequence[Any]]) -> Iterator[_Batch]:
    """Split calls into requests of limited numbers of calls and bytes."""
    for begin in range(0, len(calls), _TOGETHER):
        yield from _fitting(calls[begin : begin + _TOGETHER])


def _fitting(calls: Sequence[Sequence[Any]]) -> Iterator[_Batch]:
    tree = _tree(calls)
    if len(calls) == 1 or wire.size(tree) <= wire.FRAME // 2:
        yield _Batch(calls, tree)
    else:
        yield from _fitting(calls[: len(calls) // 2])
        yield from _fitting(calls[len(calls) // 2 :])


def _tree(calls: Sequence[Sequence[Any]]) -> Any:
    try:
        return wire.calls_to_tree(calls)
    except wire.WireError as error:
        raise ArgumentError(f"This cannot be passed to a program: {error}.") from None


FORKED: weakref.WeakSet[Any] = weakref.WeakSet()
"""Objects whose method ``_forked()`` is called in a forked process."""


def _tell_forked() -> None:
    for each in list(FORKED):
        each._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tell_forked)
