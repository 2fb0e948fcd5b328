"""Which questions threads of this process are asking right now, so that no two ask the same."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence

from hunch.lm.question import Question


class Claims:
    """A question is claimed by the thread that asks it; whoever else wants it waits for the answer."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._taken: set[Question] = set()
        self._changed = threading.Condition()

    def __reduce__(self) -> tuple[type[Claims], tuple[()]]:
        return Claims, ()

    def take(self, questions: Sequence[Question]) -> list[Question]:
        """Claim those of the questions that nobody is asking, and return them."""
        if self._process != os.getpid():  # the threads that held these claims stayed in the parent
            self.__init__()  # type: ignore[misc]
        with self._changed:
            mine = [question for question in questions if question not in self._taken]
            self._taken.update(mine)
        return mine

    def release(self, questions: Iterable[Question]) -> None:
        """Give up claims, answered or not."""
        with self._changed:
            self._taken.difference_update(questions)
            self._changed.notify_all()

    def wait(self, questions: Sequence[Question]) -> None:
        """Wait until none of the questions is being asked."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken.isdisjoint(questions))
