"""Asks a model in a thread, so that whoever asked can go on until the answers are needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from hunch.lm.base import LanguageModel

T = TypeVar("T")


class Ahead(Generic[T]):
    """A question that was sent ahead of its use.

    Args:
        ask: Asks, and returns the answer. Until :meth:`result` returns, nobody else may use what it changes.
        in_thread: False to ask at once: the answer of a model in this process comes no sooner from a thread.
    """

    def __init__(self, ask: Callable[[], T], *, in_thread: bool) -> None:
        self._future: Future[T] = Future()
        if in_thread:
            # A process that ends does not wait for the answers: they are stored as they arrive.
            threading.Thread(target=self._run, args=(ask,), name="hunch-ahead", daemon=True).start()
        else:
            self._run(ask)

    def _run(self, ask: Callable[[], T]) -> None:
        try:
            self._future.set_result(ask())
        except BaseException as error:  # whoever wants the answer gets the error, Ctrl-C included
            self._future.set_exception(error)

    def result(self) -> T:
        """Wait for the answer and return it, or raise what asking raised."""
        return self._future.result()


def is_elsewhere(model: LanguageModel | Any) -> bool:
    """Return whether a model computes in another process, so that its caller only waits."""
    return hasattr(getattr(model, "model", model), "stream")
