"""Asks a language model which of two things is better; the verdict is 1, 2 or none.

A model that writes answers with one of these, in its own words or restricted to them. By other ways the
probability of each is known: of a decision model, or by the likelihood of the answers or of letters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, get_args

from hunch.core import FloatArray
from hunch.lm.answers.lines import bounded, spoken
from hunch.lm.answers.numerals import words_of
from hunch.lm.answers.reading import read_option
from hunch.lm.asking import Asking
from hunch.lm.base import LanguageModel
from hunch.lm.decision import DecisionQuestion
from hunch.lm.hearing import show
from hunch.lm.prompts import Prompt
from hunch.lm.scoring.choose import decide, extended
from hunch.lm.ways import Way, one_way, way_for

CHOICES: Final = ("1", "2", "none")
BETTER: Final = "Which of the two is better?"
TARGETS: Final = {1: 1.0, 2: 0.0, 0: 0.5}
"""Preference for the first option, from 0 to 1, for each verdict; verdict 0 is a tie."""
VERDICTS: Final = {"1": 1, "2": 2, "none": 0, "neither": 0}


REMINDER: Final = "\nAnswer with 1, 2 or none only."
"""What a question ends with when it is asked again."""

CompareWay = Literal["auto", "decision", "structured", "label", "likelihood", "text"]
COMPARING: Final[tuple[Way, ...]] = ("decision", "structured", "label", "likelihood", "text")
"""The ways of asking for a verdict."""
WRITTEN: Final[tuple[Way, ...]] = ("decision", "structured", "text")
"""The ways among which auto takes the model's best: a model that continues text goes on to be read."""


def comparing(way: str) -> CompareWay:
    """Return a way of asking for a verdict.

    Raises:
        UsageError: if verdicts cannot be asked for in this way.
    """
    known: tuple[CompareWay, ...] = get_args(CompareWay)
    return one_way("A judge of pairs", way, known)


class _Asked(NamedTuple):
    """A question at its place among all, and the number of the sample that answers it."""

    place: int
    question: Prompt
    sample: int


class Comparer:
    """Asks a language model for verdicts: 1, 2 or none.

    Attributes:
        way: The way of asking.
        decides: True if the probability of each answer is known; questions then need no list of answers at
            the end.
        unread: Number of questions of the last call that have no readable verdict.

    Args:
        lm: A model that writes, decides, scores or labels.
        asking: How the model is asked.
        last: Read the last verdict in an answer instead of the first, for models that explain first.
        question: The question where the probability of each answer is known.
        way: The way of asking; auto takes the best of :data:`WRITTEN`, and free text with ``last``.

    Raises:
        UsageError: if the model cannot be asked in this way.
    """

    unread = 0

    def __init__(
        self,
        lm: LanguageModel,
        asking: Asking,
        last: bool = False,
        question: str = BETTER,
        way: CompareWay = "auto",
    ) -> None:
        self.lm = lm
        self.asking = asking
        self.last = last
        self.question = question
        possible: tuple[Way, ...] = COMPARING
        if way == "auto":
            possible = ("decision", "text") if last else WRITTEN
        self.way = way_for(lm, way, possible, role=asking.role, needed_by="A judge of pairs")
        self.decides = self.way in ("decision", "label", "likelihood")

    def preferences(self, questions: Sequence[Prompt | None]) -> list[float]:
        """Return the preference for the first of the two in each question, from 0 to 1; 0.5 is a tie.

        That of a model that writes is 0, 0.5 or 1. Known probabilities give p(1) + p(none) / 2. A question
        that is None, or that has no verdict, is a tie.
        """
        return [preference for _, preference in self.compared(questions)]

    def compared(self, questions: Sequence[Prompt | None]) -> list[tuple[int | None, float]]:
        """Return what :meth:`verdicts` and :meth:`preferences` return of each question, asked once."""
        if not self.decides:
            return [(verdict, TARGETS[verdict or 0]) for verdict in self.verdicts(questions)]
        answers: list[tuple[int | None, float]] = []
        for question, p in zip(questions, self._decided(questions), strict=True):
            if p is None:
                answers.append((0 if question is None else None, TARGETS[0]))
            else:
                answers.append((VERDICTS[CHOICES[int(p.argmax())]], float(p[0] + p[2] / 2)))
        return answers

    def _decided(self, questions: Sequence[Prompt | None]) -> list[FloatArray | None]:
        """Return the probabilities of 1, 2 and none; None for a question that is None, or was refused."""
        asked = [question for question in questions if question is not None]
        choice = DecisionQuestion("choice", self.question, CHOICES)
        answered = decide(
            self.lm,
            asked,
            [[choice]] * len(asked),
            way=self.way,
            patience=self.asking.patience,
            role=self.asking.role,
        )
        # One answer to each question that is not None, in their order.
        answers = iter(answered)
        probabilities: list[FloatArray | None] = []  # each of shape (3,)
        self.unread = 0
        for question in questions:
            if question is None:
                probabilities.append(None)
                continue
            [answer] = next(answers)
            if answer.fallbacks:  # a refusal
                self.unread += 1
            probabilities.append(None if answer.fallbacks else answer.probabilities)
        return probabilities

    def verdicts(self, questions: Sequence[Prompt | None]) -> list[int | None]:
        """Return the verdict on each question, 1, 2 or 0 (a tie, also if a question is None), else None.

        A repeated question gets another sample. If an answer has no verdict, the question is asked again.
        Where probabilities are known, the verdict is the most probable answer.
        """
        if self.decides:
            return [verdict for verdict, _ in self.compared(questions)]
        verdicts: list[int | None] = [0 if question is None else None for question in questions]

        # Number the occurrences of each question: its n-th occurrence gets the n-th sampled answer.
        asked: list[_Asked] = []
        occurrences: Counter[Prompt] = Counter()
        for i, question in enumerate(questions):
            if question is not None:
                asked.append(_Asked(i, question, occurrences[question]))
                occurrences[question] += 1

        # The second attempt asks only where the first had no verdict, with a reminder.
        last_answer: dict[int, str] = {}  # by the place of the question
        for attempt in (0, 1):
            due = [one for one in asked if verdicts[one.place] is None]
            answers = self._answers(due, REMINDER if attempt else "")
            for one, answer in zip(due, answers, strict=True):
                verdicts[one.place] = read_preference(answer, last=self.last)
                last_answer[one.place] = answer
            if attempt == 0:  # what is asked again is shown here, and all others when they are heard
                unread = [last_answer[one.place] for one in due if verdicts[one.place] is None]
                show(self.lm, self.asking.role, unread, [None] * len(unread))
        # Answers with a verdict are heard, too: they end a series of useless ones.
        places = [one.place for one in asked]
        read = [verdicts[place] for place in places]
        self.asking.hear([last_answer[place] for place in places], read, abstains=True)
        self.unread = sum(verdict is None for verdict in verdicts)
        return verdicts

    def _answers(self, due: Sequence[_Asked], reminder: str) -> list[str]:
        """Return an answer to each question, which ends with a reminder.

        All samples of a question are one request, and questions with equally many samples are one call.
        """
        last_sample: dict[Prompt, int] = {}
        for one in due:
            last_sample[one.question] = max(last_sample.get(one.question, 0), one.sample)

        samples: dict[Prompt, list[str]] = {}
        for last in sorted(set(last_sample.values())):
            together = [question for question in last_sample if last_sample[question] == last]
            shown = [extended(question, reminder) for question in together]
            if self.way == "structured":
                texts = self.asking.restricted(shown, [CHOICES] * len(shown), last + 1)
            else:
                texts = self.asking.generate(shown, last + 1)
            samples.update(zip(together, texts, strict=True))
        return [samples[one.question][one.sample] for one in due]


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
