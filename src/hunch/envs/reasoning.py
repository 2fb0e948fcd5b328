"""Tasks of reasoning-gym as text environments (extra ``tasks``; tested with reasoning-gym 0.1.25).

The package draws questions by rule, and has a verifier for each task that scores an answer between 0 and 1.
Nine of its verifiers evaluate the answer as Python. Such a verifier runs in the sandbox only, and it is not
asked at all about an answer that could do more than compute: one that a model wrote to change its own score.
"""

from __future__ import annotations

import ast
import copy
import inspect
import math
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from textwrap import shorten
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, TypeGuard

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.parts import Part, check_part, drawn_from, in_part
from hunch.envs.textarena import OwnChance
from hunch.extras import library
from hunch.lm.registry import split
from hunch.ranges import NonNegativeInt, PositiveInt, Share
from hunch.sandbox import Program, ProgramError, Sandbox
from hunch.suggest import suggest

Reading: TypeAlias = Literal["all", "last-line", "tags"]
"""Where the answer stands in a text: all of it, its last line that is not empty, or between the last
``<answer>`` and ``</answer>``."""
LONGEST: Final = 8_192
"""Characters of the longest answer that is scored; some verifiers take quadratic time."""
SECONDS: Final = 20.0
"""Time limit for scoring one answer in the sandbox: a thousand times what simple ones take, so that a busy
machine changes no score."""
EXAMPLES: Final = ("gcd", "chain_sum", "letter_counting", "spell_backward", "word_sorting", "syllogism")
"""Tasks that an error names."""
OURS: Final = ("seed", "size")
"""Options of every task that are set by ``draw`` and ``questions``."""
_JOINED: Final = re.compile(r"\+(?=[a-z_0-9]+(?:[?+]|$))")
"""The ``+`` between two tasks, unlike one in the value of an option."""
_RUNS_TEXT: Final = re.compile(r"\b(?:eval|exec|parse_expr|sympify)\(|\bFraction\(")
"""In the source of a verifier: it evaluates texts, or computes with numbers of any size."""
_FUNCTIONS: Final = frozenset(
    (
        *("sqrt", "cbrt", "root", "exp", "log", "ln", "Abs", "abs", "Rational", "Integer", "Float"),
        *("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    )
)
"""What an answer may call."""
_CALL: Final = re.compile(r"([^\W\d]\w*)?\s*\(")
_MORE: Final = re.compile(r"__|[\\#]|\.\s*[^\W\d]|[)\]}'\"]\s*\(")
"""What an expression does not need: names with two underscores, attributes, calls of results, comments."""
_LARGE: Final = re.compile(r"!|\*\*[\s(+]*\d{3}|[*][\s(]*\d{8}")
"""What would compute for minutes, as powers of powers do: factorials, exponents from 100, very long lists."""
_MODULES: Final = (
    "reasoning_gym",
    *(
        f"sympy.{name}"
        for name in (
            *("assumptions.wrapper", "combinatorics", "integrals.heurisch", "integrals.manualintegrate"),
            *("integrals.prde", "integrals.risch", "physics.units", "polys.polymatrix", "sets.setexpr"),
            "tensor.tensor",
        )
    ),
)
"""What verifiers import in the sandbox. Sympy imports some of its modules only when it needs them, and then
no file can be read any more."""
_VERIFIER: Final = """
from reasoning_gym.factory import DATASETS

made = {}

def score(name, options, answer, item):
    key = name, repr(options)
    if key not in made:
        kind, config = DATASETS[name]
        made[key] = kind.__new__(kind)  # its data would be read from files, which are out of reach here
        made[key].config = config(**options)
    return float(made[key].score_answer(answer, item))
"""


class Question(NamedTuple):
    """A question of a task.

    Attributes:
        text: The question.
        answer: The task's own answer; None if it states none.
        item: The question as the package drew it, for its verifier.
    """

    text: str
    answer: str | None
    item: dict[str, Any]


class Task:
    """A task with options: its questions by number, and its verifier.

    Args:
        name: Name of the task in reasoning-gym.
        options: Options of the task.
        questions: Number of its questions.
        draw: Seed of the questions.

    Raises:
        UsageError: if there is no such task or option, a value is wrong, or the verifier needs a sandbox that
            this machine lacks.
        NotInstalledError: if reasoning-gym is not installed.
    """

    def __init__(self, name: str, options: Mapping[str, Any], questions: int, draw: int) -> None:
        package = library("reasoning_gym", "Tasks of reasoning-gym need reasoning-gym", "tasks")
        known = sorted(set(package.factory.DATASETS) - {"composite"})  # tasks are joined by + here
        if name not in known:
            others = f"and {len(known) - len(EXAMPLES)} others"
            hint = suggest(name, known, listed=(*EXAMPLES, others))
            raise UsageError(f"reasoning-gym has no task {name!r}; {hint}")
        kind, config = package.factory.DATASETS[name]
        task_options = [entry.name for entry in fields(config) if entry.name not in OURS]
        for option in options:
            if option in OURS:
                raise UsageError(f"The option {option} of {name} is set by --env.draw and --env.questions.")
            if option not in task_options:
                raise UsageError(f"The task {name} has no option {option!r}; {suggest(option, task_options)}")
        self.name = name
        self.options = dict(options)
        self.questions, self.draw = questions, draw
        self.chance = OwnChance()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.chance.seed(draw)
                with self.chance.drawn():
                    made = package.create_dataset(name, seed=draw, size=questions, **options)
        except Exception as error:  # its checks raise anything; the first line of an assertion says what
            stated = ", ".join(f"{option}={value!r}" for option, value in options.items())
            problem = shorten(str(error) or type(error).__name__, 200).rstrip(".")
            raise UsageError(
                f"The task {name} cannot be made with {stated or 'its defaults'}: {problem}."
            ) from error
        self._made: Any = made
        self.question = lru_cache(4_096)(self._question)  # the answers of a group share theirs
        # Conservative, and true of later versions: any module that evaluates a text scores in the sandbox.
        self.locked_in = bool(_RUNS_TEXT.search(inspect.getsource(sys.modules[kind.__module__])))
        self.evaluates = bool(_RUNS_TEXT.search(inspect.getsource(kind.score_answer)))
        if self.locked_in:
            _verifier()  # refuses a machine without a sandbox before a model is loaded

    def __reduce__(self) -> tuple[type[Task], tuple[str, Mapping[str, Any], int, int]]:
        """Be sent to another process by what it was made of; its questions are drawn there again."""
        return Task, (self.name, self.options, self.questions, self.draw)

    def _question(self, number: int) -> Question:
        """Return a question; tasks that draw from Python's global generator draw from a private one."""
        with self.chance.drawn(number):
            item = self._made[number]
        answer = item.get("answer")
        return Question(str(item["question"]).strip(), None if answer is None else str(answer), dict(item))

    def answers(self, question: Question) -> bool:
        """Return whether the task states an answer to a question that its verifier is asked about."""
        if question.answer is None:
            return False
        return not self.evaluates or only_computes(question.answer)

    def score(self, answer: str, question: Question) -> float:
        """Return the verifier's score of an answer, 0 to 1; 0 for one that the verifier cannot read.

        An empty answer gets 0, unless nothing is the right answer. Some verifiers give it a little, and a
        model that writes nothing would be rewarded for it. Where the task states no answer, nothing is right
        only if the verifier gives it 1.
        """
        if len(answer) > LONGEST:
            return 0.0
        if not answer.strip() and (question.answer or "").strip():
            return 0.0
        if self.evaluates and not only_computes(answer):
            return 0.0
        score = self._verified(answer, question)
        return score if answer.strip() else float(score == 1)

    def _verified(self, answer: str, question: Question) -> float:
        """Return the verifier's score of an answer, 0 to 1; 0 where it fails."""
        if self.locked_in:
            options = {"seed": 0, "size": 1, **self.options}
            try:
                return _share(_verifier()(self.name, options, answer, question.item))
            except ProgramError:  # out of time or memory, or an error of the verifier
                return 0.0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _share(self._made.score_answer(answer, copy.deepcopy(question.item)))
        except Exception:  # some verifiers raise at texts which they do not expect
            return 0.0


def only_computes(answer: str) -> bool:
    """Return whether an answer, read as Python, only computes with numbers, texts and lists, and shortly."""
    if _MORE.search(answer) or _LARGE.search(answer) or _has_powers_of_powers(answer):
        return False
    return all(name in _FUNCTIONS for name in _CALL.findall(answer) if name)


def _has_powers_of_powers(answer: str) -> bool:
    """Return whether a power is in an exponent, or in a base that is a number; not in sums like x**3 + x."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expression = ast.parse(answer.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return answer.count("**") > 1
    for node in ast.walk(expression):
        if not _is_power(node):
            continue
        if any(map(_is_power, ast.walk(node.right))):
            return True
        in_base = list(ast.walk(node.left))
        has_symbol = any(isinstance(part, ast.Name) and part.id not in _FUNCTIONS for part in in_base)
        if any(map(_is_power, in_base)) and not has_symbol:
            return True
        if any(_is_power(part) and any(map(_is_power, ast.walk(part.left))) for part in in_base):
            return True  # a power of a power of a power, whatever it is of
    return False


def _is_power(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)


@cache
def _verifier() -> Program:
    """Return the program that scores answers in the sandbox; one serves all tasks of this process."""
    box = Sandbox(seconds=SECONDS, modules=_MODULES)
    return box.load(_VERIFIER, "score", returns=float)


def _share(score: Any) -> float:
    value = float(score)
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0


def read_answer(text: str, reading: Reading) -> str:
    """Return the answer in a text, without spaces at its ends; empty if there is none."""
    if reading == "last-line":
        lines = [line for line in text.splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""
    if reading == "tags":
        _, opened, rest = text.rpartition("<answer>")
        inside, closed, _ = rest.partition("</answer>")
        return inside.strip() if opened and closed else ""
    return text.strip()


class Demonstrations(Sequence[tuple[str, tuple[str, ...]]]):
    """Questions of a part with the answers of their tasks, drawn when they are asked for.

    Left out are questions without an answer, and those whose answer is not scored: some of
    ``intermediate_integration`` state an integral that was not computed.

    Args:
        env: The environment.
        most: Maximum number of demonstrations.
    """

    def __init__(self, env: Reasoning, most: int) -> None:
        self.env = env
        self.most = most
        self._drawn: list[tuple[str, tuple[str, ...]]] | None = None

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def _all(self) -> list[tuple[str, tuple[str, ...]]]:
        """Take the tasks in turn, and of each its first questions of the part that state an answer."""
        if self._drawn is None:
            env = self.env
            of_task = [filter(task.answers, env.of_part(task)) for task in env.tasks]
            drawn: list[tuple[str, tuple[str, ...]]] = []
            while of_task and len(drawn) < self.most:
                left = []
                for questions in of_task:
                    question = next(questions, None)
                    if question is not None and len(drawn) < self.most:
                        drawn.append((env.shown(question), (env.written(question),)))
                        left.append(questions)
                of_task = left
            self._drawn = drawn
        return self._drawn


class Reasoning(TextEnv):
    """Tasks of reasoning-gym, whose verifiers score answers.

    The observation is a question, any text is the answer, and the reward is the verifier's score, 0 to 1. An
    episode is one answer; a score of 1 is a success. Which questions are held out depends only on their texts
    and on ``draw``: a question is never in both parts. With ``task_seed`` the question is the same.

    Args:
        tasks: Name of a task, with options as in ``gcd?max_numbers=2``, or several joined by ``+``, which are
            drawn equally often.
        part: Questions for training (``train``), those that are held out from it (``held-out``), or ``all``.
        questions: Number of questions of each task, of both parts together.
        held_out: Share of the questions that are held out.
        draw: Seed of the questions and of their parts.
        ask: What the observation says after the question; empty for nothing.
        answer: Where the answer stands in a text: ``all`` of it, its ``last-line``, or in ``tags``
            (``<answer>...</answer>``).
        demonstrations: Number of questions of the part with their answers, for methods that learn from such.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if there is no such task or option, or a verifier that evaluates answers cannot be locked
            in on this machine.
        NotInstalledError: if reasoning-gym is not installed.
    """

    offers = ("free_text", "events")

    def __init__(
        self,
        tasks: str,
        *,
        part: Part = "train",
        questions: PositiveInt = 5_000,
        held_out: Share = 0.2,
        draw: NonNegativeInt = 0,
        ask: str = "Answer with the result only.",
        answer: Reading = "all",
        demonstrations: NonNegativeInt = 256,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(1, render_mode)
        check_part(part)
        if answer not in ("all", "last-line", "tags"):
            raise UsageError(f"answer must be all, last-line or tags, not {answer!r}.")
        self.tasks = [_task(each, questions, draw) for each in _JOINED.split(tasks)]
        names = [task.name for task in self.tasks]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise UsageError(f"The task {twice} is named twice: a mixture joins different tasks.")
        self.part: Part = part
        self.questions = questions
        self.held_out = held_out
        self.draw = draw
        self.ask = ask
        self.answer: Reading = answer
        self.examples = Demonstrations(self, demonstrations)  # type: ignore[assignment]
        self.now: tuple[Task, Question] | None = None

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "history": 0}  # type: ignore[misc]

    def in_part(self, question: Question) -> bool:
        """Return whether a question belongs to the environment's part."""
        return in_part(question.text, self.part, self.held_out, self.draw)

    def of_part(self, task: Task) -> Any:
        """Yield the different questions of a task that belong to the part, by their numbers."""
        seen = set()
        for number in range(self.questions):
            question = task.question(number)
            if question.text not in seen and self.in_part(question):
                seen.add(question.text)
                yield question

    def shown(self, question: Question) -> str:
        """Return the observation that asks a question."""
        return f"{question.text}\n{self.ask}" if self.ask else question.text

    def written(self, question: Question) -> str:
        """Return the task's own answer to a question, as a text from which it is read."""
        return f"<answer>{question.answer}</answer>" if self.answer == "tags" else str(question.answer)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Reasoning has no reset option {next(iter(options))!r}.")
        task = self.tasks[int(self.task_random.integers(len(self.tasks)))]
        question = drawn_from(
            self.part,
            lambda: task.question(int(self.task_random.integers(self.questions))),
            lambda each: each.text,
            self.held_out,
            self.draw,
        )
        if question is None:
            raise UsageError(
                f"Among {self.questions:,} questions of {task.name} none is in the part {self.part!r}: raise "
                "questions, or change held_out or draw."
            )
        self.now = task, question
        return Outcome(self.shown(question), None)

    def _move(self, action: str) -> Outcome:
        assert self.now is not None  # an episode runs
        task, question = self.now
        score = task.score(read_answer(action, self.answer), question)
        event = f"{task.name}: score {score:.2f}"
        return Outcome("", None, score, terminated=True, success=score == 1, event=event)

    def unshare(self, memo: dict[int, Any]) -> None:
        """Share everything: a step only replaces attributes."""


@cache
def _made(name: str, options: str, questions: int, draw: int) -> Task:
    """Return a task; environments of one process share it, because some read large files."""
    return Task(name, split(f"{name}?{options}" if options else name)[1], questions, draw)


def _task(spec: str, questions: int, draw: int) -> Task:
    name, _, options = spec.partition("?")
    return _made(name, options, questions, draw)
