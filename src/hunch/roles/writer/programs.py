"""The program role: a writer writes programs, and a search chooses their parents.

A writer sees a problem, parents with their results, and feedback in words. A search returns requests and
receives the attempts; it never reads a program's text. So every search works with every writer, and the
controls of a search only change what the writer sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, Protocol

import numpy as np

from hunch.core import EvidenceLevel, UsageError
from hunch.envs.design.code import extract
from hunch.envs.design.mutation import mutate
from hunch.envs.design.problem import Problem, Trial
from hunch.lm.answers.lines import spoken
from hunch.lm.asking import AskConfig, Asking
from hunch.lm.base import LanguageModel
from hunch.lm.prompts import Prompt as AnyPrompt
from hunch.lm.registry import require

Feedback = Literal["own", "blind", "shuffled", "fresh"]
"""Feedback that a writer sees: that of its parents (own), or a control: none, another's, or no parents."""

Kind = Literal["", "fresh", "revise", "repair", "combine", "simplify"]
"""What a writer is asked for: a new program, a better one, one without its error, one that joins two others,
or a shorter one that does the same."""


@dataclass(frozen=True)
class Attempt:
    """A program that was tried, and its result.

    Attributes:
        number: Number of the attempt in the run, from 0.
        program: Text of the program.
        fitness: Fitness of the program; None if it failed.
        feedback: Feedback of the evaluation, in words.
        error: Why the program failed; empty if it did not.
        scores: Score on each input, if there are several.
        components: Parts of the fitness by name.
        parents: Numbers of the attempts that the writer saw.
        shown: The feedback that the writer saw.
        group: Label of the search, such as an island or operation; -1 for all or none.
        kind: What the writer was asked for, if the search says so: see :data:`Kind`.
        copy_of: Number of the attempt of which the program says the same; None if it is new.
    """

    number: int
    program: str
    fitness: float | None
    feedback: str = ""
    error: str = ""
    scores: tuple[float, ...] = ()
    components: Mapping[str, float] = field(default_factory=dict)
    parents: tuple[int, ...] = ()
    shown: str = ""
    group: int = 0
    kind: Kind = ""
    copy_of: int | None = None

    def outcome_text(self) -> str:
        """The result in words, also of a failed program; empty before the evaluation."""
        if self.fitness is None:
            return f"The program failed. {why}" if (why := self.error or self.feedback) else ""
        return f"fitness: {self.fitness:.6g}\n{self.feedback}".strip()

    def after(self, trial: Trial) -> Attempt:
        """Return the attempt with the result of its trial."""
        return replace(
            self,
            fitness=trial.fitness,
            feedback=trial.feedback,
            error=trial.error,
            scores=tuple(trial.scores),
            components=dict(trial.components),
        )

    def line(self) -> dict[str, Any]:
        """Return the attempt as plain values, for a file or a checkpoint."""
        values = {**asdict(self), "scores": list(self.scores), "parents": list(self.parents)}
        if not self.kind:
            del values["kind"]
        if self.copy_of is None:
            del values["copy_of"]
        return values

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> Attempt:
        """Make an attempt from the result of :meth:`line`."""
        return cls(**{**line, "scores": tuple(line["scores"]), "parents": tuple(line["parents"])})


@dataclass(frozen=True)
class Request:
    """A request of a search for a new program.

    Attributes:
        parents: Attempts to improve, the most important last; empty for a program from scratch.
        group: Label of the search, which the attempt keeps.
        kind: What is asked for; empty if parents and feedback say it.
    """

    parents: tuple[Attempt, ...] = ()
    group: int = 0
    kind: Kind = ""


class Search(Protocol):
    """Chooses the parents of the next programs. All random choices use ``rng``."""

    def ask(self, n: int, rng: np.random.Generator) -> list[Request]:
        """Return n requests for programs."""

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Record finished attempts, in the order of their numbers."""


class Writer(Protocol):
    """Writes programs. The result depends only on the request and the number of the draw."""

    @property
    def evidence(self) -> EvidenceLevel | None:
        """Evidence level of the programs; None if no model is used."""

    def write(
        self,
        problem: Problem,
        parents: Sequence[Attempt],
        feedback: str,
        n: int,
        first: int = 0,
        kind: Kind = "",
    ) -> list[str]:
        """Return n programs, those with the numbers ``first`` to ``first + n - 1``; "" stands for no program.

        Args:
            problem: The problem to solve.
            parents: Attempts to improve on, the most important last; may be empty.
            feedback: The result of the last parent in words; may be empty.
            n: Number of programs.
            first: Number of the first program; each number is a separate draw.
            kind: What is asked for. Writers that know no kinds go by parents and feedback alone.
        """


# ---- writers ----------------------------------------------------------------------------------------------

Prompt = Callable[[Problem, Sequence[Attempt], str], str]
"""Function that makes the prompt of a request."""


def chat_prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
    """Return the plain prompt: the problem, the last parent, and its feedback."""
    ask = f"Write {problem.requested_functions or 'the program'}."
    parts = [problem.text()]
    if parents:
        parts.append(f"This program was tried:\n\n```python\n{parents[-1].program.strip()}\n```")
        ask = ask.replace("Write", "Write an improved version of")
    if feedback:
        parts.append(f"What became of it:\n{feedback}")
    return "\n\n".join([*parts, f"{ask} Answer with one block of Python code that is complete in itself."])


ASKS = AskConfig()
NO_KINDS: Final[Mapping[Kind, Prompt]] = {}


class ModelWriter:
    """A writer that uses a language model.

    Args:
        lm: A model that generates.
        prompt: Makes the prompt of a request; each method passes the prompt of its paper.
        prompts: Prompts of kinds of request that have one of their own.
        asks: How answers are sampled, by default with up to 2048 tokens, and possibly a prompt file with the
            fields ``{task}`` (the problem), ``{examples}`` (the programs to start from) and
            ``{observation}`` (the result of the last program).

    Raises:
        UsageError: if the model does not generate, or does not support a setting.
    """

    def __init__(
        self,
        lm: LanguageModel,
        prompt: Prompt = chat_prompt,
        *,
        prompts: Mapping[Kind, Prompt] = NO_KINDS,
        asks: AskConfig = ASKS,
    ) -> None:
        self.lm = require(lm, "generate", "A writer of programs")
        self.prompt = prompt
        self.prompts = prompts
        self._asking = Asking(lm, asks, tokens=2048, stop=(), role="writer")

    @property
    def evidence(self) -> EvidenceLevel:
        """The evidence level of the model."""
        return self.lm.evidence

    def write(
        self,
        problem: Problem,
        parents: Sequence[Attempt],
        feedback: str,
        n: int,
        first: int = 0,
        kind: Kind = "",
    ) -> list[str]:
        """Ask the model, and extract all code from its answers.

        Raises:
            HunchError: if too many answers in a row contain no code.
        """
        return self._written(problem, [self._prompt(problem, parents, feedback, kind)], n, first)

    def write_each(self, problem: Problem, requests: Sequence[tuple[Sequence[Attempt], str]]) -> list[str]:
        """Ask for one program per request, all in one batch.

        Args:
            problem: The problem.
            requests: Parents and feedback of each request.

        Raises:
            HunchError: as for :meth:`write`.
        """
        return self._written(problem, [self._prompt(problem, *request) for request in requests], 1, 0)

    def _prompt(
        self, problem: Problem, parents: Sequence[Attempt], feedback: str, kind: Kind = ""
    ) -> AnyPrompt:
        prompt = self.prompts.get(kind, self.prompt)
        shown = "\n\n".join(f"```python\n{parent.program.strip()}\n```" for parent in parents)
        return self._asking.prompt(
            prompt(problem, parents, feedback), task=problem.text(), examples=shown, observation=feedback
        )

    def _answers(self, prompts: Sequence[AnyPrompt], n: int, first: int) -> list[list[str]]:
        """Return n answers to each prompt; ``first`` is the number of the first."""
        return self._asking.generate(prompts, n, first)

    def _written(self, problem: Problem, prompts: Sequence[AnyPrompt], n: int, first: int) -> list[str]:
        sampled = self._answers(prompts, n, first)
        answers = [answer for samples in sampled for answer in samples]
        programs = [extract(spoken(answer), problem.function) for answer in answers]
        self._asking.hear(answers, [program if program.strip() else None for program in programs])
        return programs


class Mutator:
    """A writer that randomly changes the parents' syntax trees: genetic programming without a model.

    Without parents it changes the problem's initial program.
    """

    evidence: EvidenceLevel | None = None

    def write(
        self,
        problem: Problem,
        parents: Sequence[Attempt],
        feedback: str,
        n: int,
        first: int = 0,
        kind: Kind = "",
    ) -> list[str]:
        """Return programs that change the last parent, using pieces of the others."""
        if problem.as_class is not None:
            raise UsageError("A mutator changes a function, and this problem asks for a class.")
        if not problem.start and not parents:
            raise UsageError("A mutator needs a problem with a first program to change.")
        programs = [parent.program for parent in parents] or [problem.start]
        return [
            mutate(programs, problem.function, np.random.default_rng([number, 7]))
            for number in range(first, first + n)
        ]


# ---- what a writer is shown -------------------------------------------------------------------------------


def shown(
    request: Request, attempts: Sequence[Attempt], kind: Feedback, rng: np.random.Generator
) -> tuple[tuple[Attempt, ...], str]:
    """Return the parents and the feedback that a writer sees: unchanged, or changed by a control.

    Args:
        request: The request.
        attempts: All attempts so far.
        kind: ``own`` for the method, else a control.
        rng: Chooses the other program, for ``shuffled``.
    """
    if kind == "fresh" or not request.parents:
        return (), ""
    if kind == "blind":
        return request.parents, ""
    *earlier, last = request.parents
    if kind != "shuffled":
        return request.parents, last.outcome_text()
    source = _other(last, attempts, rng)
    # Some prompts show the results of earlier parents, too.
    dealt = [_with_result_of(_other(parent, attempts, rng), parent) for parent in earlier]
    return (*dealt, last), source.outcome_text()


def _other(attempt: Attempt, attempts: Sequence[Attempt], rng: np.random.Generator) -> Attempt:
    """Draw another attempt; the same one if it is the only one."""
    others = [other for other in attempts if other.number != attempt.number]
    return others[int(rng.integers(len(others)))] if others else attempt


def _with_result_of(source: Attempt, attempt: Attempt) -> Attempt:
    """Return an attempt with the result of another one."""
    return replace(attempt, fitness=source.fitness, feedback=source.feedback, error=source.error)


def fitness_of(attempt: Attempt | None) -> float:
    """Return the fitness for comparisons: minus infinity without an attempt, or if it failed."""
    return -np.inf if attempt is None or attempt.fitness is None else attempt.fitness


def outcome_of(attempt: Attempt) -> tuple[float, ...]:
    """Return the scores on all inputs, or the fitness if there are none: equal ones are one outcome."""
    return attempt.scores or (fitness_of(attempt),)


def best(attempts: Iterable[Attempt]) -> Attempt | None:
    """Return the attempt with the highest fitness, the first among equals; None if all failed."""
    fit = [attempt for attempt in attempts if attempt.fitness is not None]
    return max(fit, key=lambda a: (a.fitness, -a.number), default=None)
