"""Answers in memory, limited in number and bytes; the oldest are dropped first."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from hunch.lm.answers.question import Question
from hunch.lm.base import OptionScores

MOST_ANSWERS: Final = 100_000
MOST_BYTES: Final = 256 * 2**20
OVERHEAD: Final = 500
"""Approximate size in bytes of an answer, without its arrays and texts."""


class Memory:
    """Answers in memory, by the requests.

    Attributes:
        size: Approximate size in bytes.
    """

    def __init__(self) -> None:
        self.__setstate__(({}, 0))

    def __len__(self) -> int:
        return len(self._answers)

    def __getstate__(self) -> tuple[dict[Question, Any], int]:
        with self._lock:
            return dict(self._answers), self.size

    def __setstate__(self, state: tuple[dict[Question, Any], int]) -> None:
        self._answers, self.size = state
        self._lock = threading.Lock()

    def find(self, questions: Sequence[Question]) -> dict[Question, Any]:
        """Return the answers that are in memory."""
        answers = self._answers
        return {q: answer for q in questions if (answer := answers.get(q)) is not None}

    def keep(self, answers: Mapping[Question, Any]) -> None:
        """Store answers, and drop the oldest ones if there are too many."""
        with self._lock:
            for question, answer in answers.items():
                if question not in self._answers:
                    self.size += OVERHEAD + _size((question.request, answer))
                self._answers[question] = answer
            while len(self._answers) > MOST_ANSWERS or self.size > MOST_BYTES:
                oldest = next(iter(self._answers))
                self.size -= OVERHEAD + _size((oldest.request, self._answers.pop(oldest)))


def _size(value: Any) -> int:
    """Return the approximate size in bytes."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, OptionScores):
        return _size(value.logprobs) + _size(value.tokens) + _size(value.words)
    return sum(map(_size, value)) if isinstance(value, tuple | list) else 8
