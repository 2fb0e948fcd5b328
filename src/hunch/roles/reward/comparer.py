"""Asks a language model which of two things is better; the verdict is 1, 2 or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hunch.lm import require
from hunch.lm.answers.lines import bounded, spoken
from hunch.lm.answers.numerals import words_of
from hunch.lm.answers.reading import read_option
from hunch.lm.asking import Asking
from hunch.lm.base import LanguageModel
from hunch.lm.hearing import show
from hunch.lm.prompts import Prompt
from hunch.lm.scoring.choose import extended

CHOICES: Final = ("1", "2", "none")
TARGETS: Final = {1: 1.0, 2: 0.0, 0: 0.5}
"""Preference for the first option, from 0 to 1, for each verdict; verdict 0 is a tie."""
VERDICTS: Final = {"1": 1, "2": 2, "none": 0, "neither": 0}


class Comparer:
    """Asks a language model for verdicts: 1, 2 or none.

    Attributes:
        unread: Number of questions of the last call whose answers had no readable verdict.

    Args:
        lm: The model.
        asking: How the model is asked.
        last: Read the last verdict in an answer instead of the first, for models that explain first.
    """

    unread = 0

    def __init__(self, lm: LanguageModel, asking: Asking, last: bool = False) -> None:
        self.lm, self.asking, self.last = require(lm, "generate", needed_by="A judge of pairs"), asking, last

    def verdicts(self, questions: Sequence[Prompt | None]) -> list[int | None]:
        """Return the verdict on each question, 1, 2 or 0 (a tie, also if a question is None), else None.

        A repeated question gets another sample. If an answer has no verdict, the question is asked again.
        """
        times: dict[Prompt, int] = {}
        asked: list[tuple[int, Prompt, int]] = []  # index, question, sample
        for i, question in enumerate(questions):
            if question is not None:
                times[question] = times.get(question, -1) + 1
                asked.append((i, question, times[question]))
        found: list[int | None] = [0 if question is None else None for question in questions]
        for attempt in (0, 1):
            due = [(i, question, n) for i, question, n in asked if found[i] is None]
            answers = self._answers(due, attempt)
            for (i, _, _), answer in zip(due, answers, strict=True):
                found[i] = read_preference(answer, last=self.last)
            if not attempt:  # those of the second are shown when they are heard
                show(self.lm, self.asking.role, answers, [found[i] for i, _, _ in due])
        self.asking.hear(answers, [found[i] for i, _, _ in due], abstains=True)
        self.unread = sum(verdict is None for verdict in found)
        return found

    def _answers(self, due: Sequence[tuple[int, Prompt, int]], attempt: int) -> list[str]:
        """Return an answer to each question; all samples of one are requested together."""
        most: dict[Prompt, int] = {}
        for _, question, n in due:
            most[question] = max(most.get(question, 0), n)
        reminder = "" if not attempt else "\nAnswer with 1, 2 or none only."
        samples: dict[Prompt, list[str]] = {}
        for n in sorted(set(most.values())):
            own = [question for question in most if most[question] == n]
            shown = [extended(question, reminder) for question in own]
            samples |= zip(own, self.lm.generate(shown, n + 1, self.asking.sampling), strict=True)
        return [samples[question][n] for _, question, n in due]


def read_preference(answer: str, *, last: bool = False) -> int | None:
    """Return the verdict in an answer: 1, 2, or 0 for neither; None if there is no verdict.

    If an answer names several without deciding, the first counts, or with ``last`` the last.
    """
    decided = read_option(answer, CHOICES)
    if decided is not None:
        return (decided + 1) % len(CHOICES)
    # Numbers are compared as values: neither "1.5" nor "1-2" is a verdict.
    words = words_of(bounded(spoken(answer)), known=CHOICES)
    verdicts = [VERDICTS[word.text] for word in words if word.text in VERDICTS and word.opens and word.closes]
    if not verdicts:
        return None
    return verdicts[-1 if last else 0]
