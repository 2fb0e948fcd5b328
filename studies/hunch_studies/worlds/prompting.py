"""Prompting: a frozen model answers questions, and the action is its prompt, an edit of it, or one of a list.

``play`` says what the action is: ``write`` a prompt for many questions (one step), ``edit`` the prompt of one
question, ``choose`` one of some prompts for a question, or ``read``: answer the question oneself after a
random prompt, which is how a small model is trained that can then be prompted (``--lm``). Any model may be
asked; it is counted with those of the agent.

The questions that come with it are ours. Each names its answer, and a model that was trained on our lessons
gives it only after a prompt that helps: each question belongs to a topic, and each topic has five words. The
first helps with all of its questions, the second with two thirds, the third with one third, the fourth with
none, and the last misleads on two thirds. A prompt of three words cannot serve all four topics, but one for a
single question can.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.offers import Offer
from hunch.envs.prompts import numbered, results, shown
from hunch.envs.reading import shared
from hunch.lm import choose
from hunch.lm.ways import Way
from hunch.ranges import NonNegativeInt, PositiveInt

TOPICS: Final = {
    "bird": ("feather", "nest", "beak", "cloud", "mirror"),
    "boat": ("anchor", "sail", "harbour", "pebble", "wheel"),
    "bread": ("flour", "oven", "crust", "ladder", "candle"),
    "drum": ("rhythm", "stick", "march", "button", "feast"),
}
"""The words of each topic, from the one that helps most to the one that misleads."""
WORDS: Final = tuple(word for words in TOPICS.values() for word in words)
SIZES: Final = (22, 18, 14, 10)
"""Questions of each topic."""
KINDS: Final = ("plain", "tall", "dark")
"""Kinds of questions in each topic; the second word helps with two of them, the third with one."""
ANSWERS: Final = ("north", "south")
MOST: Final = 3
"""Words of a prompt in the lessons."""
FORM: Final = "{prompt} : {question} ="
"""What the model reads, unless another form is named."""
CANDIDATES: Final = (
    *(" ".join(words[:3]) for words in TOPICS.values()),
    "cloud pebble ladder",
    "mirror wheel candle",
)
"""The prompts to choose from: one for each topic, one that says nothing, and one that misleads."""


class Question(NamedTuple):
    """A question, its answer, and those that are possible; ``right`` holds recorded results by prompt."""

    text: str
    answer: str
    options: tuple[str, ...]
    right: Mapping[str, float] = {}


class Prompting(TextEnv):
    """Find prompts for a frozen model.

    Args:
        play: What the action is: write, edit, choose or read.
        lm: The model that is prompted, as for ``--lm``.
        file: Questions of one's own, a line of JSON each with ``prompt`` and ``answer``; or recorded results,
            with ``question``, ``prompt`` and ``right``, which need no model. Default: ours.
        split: Every second question is ``held out``, the others are for ``training``.
        topics: Number of topics of our questions; with one, a single prompt is best for all.
        count: write: questions drawn for each prompt; 0 asks all of the split.
        balanced: write: draw equally many questions of each answer. Otherwise a model that gives one answer
            to everything is paid by how many questions with this answer happen to be drawn.
        measure: write and edit: probability of the right answer minus that of the likeliest other one
            (``gap``), or whether the answer is right (``accuracy``).
        prompts: choose: the prompts, separated by ``|``. Default: six of ours.
        words: The words that prompts are made of, separated by spaces. Default: twenty of ours.
        length: edit: words of the prompt.
        form: What the model reads, with ``{prompt}`` and ``{question}``; the answer comes after it.
        way: How the model is asked for its answer; auto takes the best way that it has.
        samples: Answers to a question, for a model that writes them.
        max_steps: edit: edits of a prompt; the other kinds end with the first step.
        render_mode: ``"ansi"``.

    Raises:
        UsageError: if a file cannot be used, there is nothing to choose, or the model cannot be loaded.
    """

    def __init__(
        self,
        *,
        play: Literal["write", "edit", "choose", "read"] = "write",
        lm: str = "uniform",
        file: str = "",
        split: Literal["training", "held out"] = "training",
        topics: PositiveInt = 4,
        count: NonNegativeInt = 16,
        balanced: bool = False,
        measure: Literal["gap", "accuracy"] = "gap",
        prompts: str = "",
        words: str = "",
        length: PositiveInt = MOST,
        form: str = FORM,
        way: Way | Literal["auto"] = "auto",
        samples: PositiveInt = 1,
        max_steps: PositiveInt = 8,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps if play == "edit" else 1, render_mode)
        self.play, self.count, self.balanced, self.measure = play, count, balanced, measure
        self.length, self.samples, self.way = length, samples, way
        if missing := [field for field in ("{prompt}", "{question}") if field not in form]:
            raise UsageError(f"form must contain {missing[0]}: {form!r} does not.")
        self.form = form
        every = read_questions(file) if file else questions(topics)
        self.questions = every[(split == "held out") :: 2]
        if not self.questions:
            raise UsageError(f"{file} has {len(every)} question, so that none is {split}.")
        # The places of the questions with each answer.
        answers = sorted({own.answer for own in self.questions})
        self.of_answer = [
            [place for place, own in enumerate(self.questions) if own.answer == answer] for answer in answers
        ]
        if balanced and play != "write":
            raise UsageError(f"balanced is of write, which draws several questions: {play} draws one.")
        if balanced and count % len(answers):
            raise UsageError(f"count must be a multiple of {len(answers)} to be balanced, not {count}.")
        if balanced and not count and len(set(map(len, self.of_answer))) > 1:
            raise UsageError("All questions together have more of one answer than of another: set count.")
        self.things = tuple(words.split()) or WORDS
        self.prompts_given = tuple(p.strip() for p in prompts.split("|") if p.strip()) or CANDIDATES
        if play == "choose" and len(set(self.prompts_given)) < 2:
            raise UsageError("There is only one prompt, so there is nothing to choose.")
        recorded = any(own.right for own in every)
        if recorded and play != "choose":
            raise UsageError(
                "Recorded results only say which of their prompts to choose: set play to choose."
            )
        self.models = {} if recorded or play == "read" else {"prompted": shared(lm)}
        self.lessons = play == "read" and not file

    @property
    def offers(self) -> Sequence[Offer]:  # type: ignore[override]
        """Any text where it is written, and else a list."""
        if self.play == "write":
            return ("free_text", "events")
        return ("free_text",) if self.play == "read" else ()

    @cached_property
    def examples(self) -> tuple[tuple[str, tuple[str, ...]], ...]:  # type: ignore[override]
        """Lessons for a model that will be prompted; only in ``read``, with our questions."""
        return lessons(16_000, self.form) if self.lessons else ()

    # ---- the episode ----------------------------------------------------------------------------------

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Prompting has no option {next(iter(options))!r} for reset.")
        rng, all_of_them = self.task_random, self.questions
        n = (self.count or len(all_of_them)) if self.play == "write" else 1
        if self.balanced and self.count:
            drawn = np.concatenate(
                [rng.choice(places, n // len(self.of_answer)) for places in self.of_answer]
            )
        elif n >= len(all_of_them):
            drawn = rng.permutation(len(all_of_them))
        else:
            drawn = rng.integers(len(all_of_them), size=n)
        self.asked = [all_of_them[i] for i in drawn]
        self.prompt = " ".join(self.things[i] for i in rng.integers(len(self.things), size=self.length))
        self.score = self._measured(*self.scores(self.prompt)) if self.play == "edit" else 0.0
        return Outcome(self._shown_now(), self._actions())

    def _shown_now(self) -> str:
        if self.play == "write":
            return "Write a prompt, after which the model answers questions."
        question = self.asked[0].text
        if self.play == "edit":
            return f"question {question}\nprompt {self.prompt}"
        return request(self.prompt, question, self.form) if self.play == "read" else question

    def _actions(self) -> tuple[str, ...] | None:
        if self.play == "choose":
            return tuple(self.asked[0].right) or self.prompts_given
        if self.play != "edit":
            return None
        puts = [f"put {word} at {i + 1}" for i in range(self.length) for word in self.things]
        swaps = [f"swap {i + 1} and {j + 1}" for j in range(self.length) for i in range(j)]
        return ("stop", *swaps, *puts)

    def _move(self, action: str) -> Outcome:
        if self.play == "edit":
            return self._edit(action)
        if self.play == "read":
            right = action.strip() == self.asked[0].answer
            return Outcome("", None, float(right), True, right)
        if recorded := self.asked[0].right:
            return Outcome("", (), recorded[action], True, recorded[action] > 0.5)
        gaps, right = self.scores(action)
        if self.play == "choose":
            return Outcome("", (), float(right[0]), True, bool(right[0] == 1))
        paid = self._measured(gaps, right)
        told = f"{right.sum():g} of {len(right)} answers are right."
        return Outcome(self._shown_now(), None, paid, True, bool(right.mean() > 0.5), event=told)

    def _edit(self, action: str) -> Outcome:
        self.prompt = edited(self.prompt, action)
        gaps, right = self.scores(self.prompt)
        score, before = self._measured(gaps, right), self.score
        self.score = score
        return Outcome(
            self._shown_now(), self._actions(), score - before, action == "stop", bool(right[0] == 1)
        )

    def _measured(self, gaps: FloatArray, right: FloatArray) -> float:
        """Return the mean of what is measured; both have shape (n,)."""
        return float((right if self.measure == "accuracy" else gaps).mean())

    def scores(self, prompt: str) -> tuple[FloatArray, FloatArray]:
        """Return gap and rightness of the model's answer to each question, two arrays of shape (n,).

        Raises:
            UsageError: if the prompt leaves no room for a question.
        """
        [lm] = self.models.values()
        asked = [request(prompt, own.text, self.form) for own in self.asked]
        needed, room = max(map(lm.count_tokens, asked)), lm.context or np.inf
        if needed >= room:
            raise UsageError(
                f"The prompt and a question have {needed:,} tokens, and {lm.name} reads {room:,}: "
                "write a shorter prompt."
            )
        listed = [own.options for own in self.asked]
        found = choose(lm, asked, listed, way=self.way, samples=self.samples, patience=None)
        gaps = np.array([gap(one.probabilities, own) for one, own in zip(found, self.asked, strict=True)])
        ties = [1 / len(own.options) for own in self.asked]
        return gaps, np.where(gaps == 0, ties, gaps > 0)

    def oracle(self) -> list[str]:
        """Return the best answer, prompt or edit that is known, for our own questions."""
        question = self.asked[0]
        topic = question.text.split()[0]
        if self.play == "read":
            return [question.answer]
        if question.right:
            return [max(question.right, key=question.right.__getitem__)]
        if self.play == "choose":
            return [self.prompts_given[list(TOPICS).index(topic)]]
        return (
            [f"put {TOPICS[topic][0]} at 1", "stop"]
            if self.play == "edit"
            else [" ".join(words[0] for words in list(TOPICS.values())[:MOST])]
        )


def gap(chances: FloatArray, question: Question) -> float:
    """Return the probability of the right answer minus that of the likeliest other one."""
    right = question.options.index(question.answer)
    return float(chances[right] - np.delete(chances, right).max())


def request(prompt: str, question: str, form: str = FORM) -> str:
    """Return what the model reads."""
    told = {"{prompt}": prompt, "{question}": question}
    return re.sub(r"\{(prompt|question)\}", lambda field: told[field[0]], form).strip()


def edited(prompt: str, action: str) -> str:
    """Return a prompt after an edit."""
    words, what = prompt.split(), action.split()
    if what[0] == "put":
        words[int(what[3]) - 1] = what[1]
    elif what[0] == "swap":
        i, j = int(what[1]) - 1, int(what[3]) - 1
        words[i], words[j] = words[j], words[i]
    return " ".join(words)


# ---- our questions --------------------------------------------------------------------------------------


def questions(topics: int = len(TOPICS)) -> list[Question]:
    """Return our questions of some topics."""
    named = [
        (topic, i) for topic, size in zip(list(TOPICS)[:topics], SIZES, strict=False) for i in range(size)
    ]
    sides = [(topic, i, ANSWERS[i // 2 % 2]) for topic, i in named]
    return [Question(f"{topic} {KINDS[i // 2 % 3]} {i} {side}", side, ANSWERS) for topic, i, side in sides]


def chance(prompt: Sequence[str], question: Question) -> float:
    """Return the probability of the right answer in the lessons: 0.98 if a word helps, 0.02 if one misleads.

    If none does, or both do, the answer is the first one, whatever the question names.
    """
    topic, kind, *_ = question.text.split()
    own, i = TOPICS[topic], KINDS.index(kind)
    helped = (own[0], *(own[1:2] * (i != 0)), *(own[2:3] * (i == 1)))
    helps, misleads = any(word in helped for word in prompt), own[4] in prompt and i != 2
    guess = 0.48 if question.answer == ANSWERS[0] else -0.48
    return 0.5 + (guess if helps == misleads else 0.48 * (helps - misleads))


def lessons(n: int, form: str = FORM) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return questions after random prompts, with answers as often right as the prompt helps."""
    rng = np.random.default_rng(0)
    both = questions()
    found = []
    for words, i, luck in zip(
        rng.integers(len(WORDS), size=(n, MOST)), rng.integers(len(both), size=n), rng.random(n), strict=True
    ):
        prompt, own = [WORDS[j] for j in words], both[i]
        right = luck < chance(prompt, own)
        said = own.answer if right else ANSWERS[own.answer == ANSWERS[0]]
        found.append((request(" ".join(prompt), own.text, form), (said,)))
    return tuple(found)


# ---- one's own questions ----------------------------------------------------------------------------------


def read_questions(file: str) -> list[Question]:
    """Read questions with answers, or recorded results.

    Raises:
        UsageError: naming the line that is neither.
    """
    lines = list(numbered(file, "answer", "right"))
    rows = [row for _, row in lines]
    if rows and "right" in rows[0]:
        return recorded(lines, file)
    for number, row in lines:
        if "answer" not in row:
            raise UsageError(f"Line {number} of {file} has no answer, as the first line has.")
    options = tuple(dict.fromkeys(str(row["answer"]) for row in rows))
    if len(options) < 2:
        raise UsageError(f"All answers in {file} are equal: a prompt has nothing to change.")
    return [Question(shown(row["prompt"]), str(row["answer"]), options) for row in rows]


def recorded(rows: Sequence[tuple[int, Mapping[str, Any]]], file: str) -> list[Question]:
    """Return recorded results as questions; a UsageError if nothing can be learned from them."""
    return [Question(text, "", (), own) for text, own in results(rows, file).items()]
