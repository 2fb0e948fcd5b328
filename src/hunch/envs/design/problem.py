"""Design problems: the problem, the trial of a program, and an environment made from a function.

A design problem is a text environment whose action is a program. The observation is the problem; a step runs
the program and returns its fitness as the reward and the feedback as ``info["event"]``. An episode is one
step, that is, one trial. So a population is a set of streams, and budget, cache, resume and report work as
for any run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import load_env_creator

from hunch.core import HunchError, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.design.code import canonical, class_flaw, flaw, quoted
from hunch.envs.design.plain import Plain
from hunch.envs.design.trials import Trials
from hunch.sandbox import ProgramError
from hunch.sandbox.errors import printable


@dataclass(frozen=True)
class ClassForm:
    """A class that a program must define in place of a function.

    Attributes:
        name: Name of the class, which is made without arguments.
        methods: Its methods, with their parameters after ``self``.
        entry: Name of the function that ``code`` defines, which a program hardly has itself.
        code: Code that follows the program where it is run, and calls the class like the problem's function.
    """

    name: str
    methods: Mapping[str, tuple[str, ...]]
    entry: str
    code: str


@dataclass(frozen=True)
class Problem:
    """A problem for program writers, available to agents in ``World.problem``.

    Attributes:
        task: The task in a sentence.
        interface: What the program must define, with types and units, in words.
        source: Code that the writer may read, such as the environment's without its reward.
        function: The function that the program must define; empty if any text may be a program.
        parameters: Parameters of the function, in order.
        start: An initial program for a search; may be empty.
        also: Further functions that the program must define, with their parameters.
        plain: The problem in the fewest words, for ``--request plain``; None if it has no other form. Its
            parameters are accepted, too.
        as_class: The class that is to be written in place of the function; None if it is the function.
    """

    task: str
    interface: str = ""
    source: str = ""
    function: str = ""
    parameters: tuple[str, ...] = ()
    start: str = ""
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plain: Plain | None = None
    as_class: ClassForm | None = field(default=None, repr=False)  # stored trials are known by the repr

    @property
    def required(self) -> tuple[str, ...]:
        """The names that stay where programs are compared: those asked for, with the methods of a class."""
        form = self.as_class
        return (self.function, *self.also, *((form.name, *form.methods) if form is not None else ()))

    @property
    def requested_functions(self) -> str:
        """The requested functions in words, as in "the function `step`"; empty if any text is a program."""
        if self.as_class is not None:
            return f"the class `{self.as_class.name}`"
        names = [f"`{name}`" for name in (self.function, *self.also) if name]
        if len(names) < 2:
            return f"the function {names[0]}" if names else ""
        return f"the functions {', '.join(names[:-1])} and {names[-1]}"

    def text(self) -> str:
        """Return the text of the problem for writers of programs."""
        code = f"```python\n{self.source.strip()}\n```" if self.source else ""
        return "\n\n".join(part for part in (self.task, self.interface, code) if part)

    def flaw(self, program: str) -> str:
        """Return why a program cannot be run, without running it; empty if nothing is found."""
        if self.as_class is not None:
            return class_flaw(program, self.as_class.name, self.as_class.methods)
        wanted = {self.function: self.parameters, **self.also} if self.function else {}
        if self.plain is not None and not flaw(program, self.function, self.plain.parameters):
            wanted[self.function] = self.plain.parameters
        return next(filter(None, (flaw(program, *function) for function in wanted.items())), "")


@dataclass(frozen=True)
class Trial:
    """The result of running a program.

    Attributes:
        fitness: Fitness of the program, larger is better; None if it failed.
        feedback: Feedback, such as a table of components or a traceback with the program's line.
        scores: Score on each input, if there are several.
        components: Parts of the fitness by name.
        error: Why the program failed; empty if it did not.
    """

    fitness: float | None
    feedback: str = ""
    scores: tuple[float, ...] = ()
    components: Mapping[str, float] = field(default_factory=dict)
    error: str = ""


class OutsideError(Exception):
    """A failure that is not the program's: its trial has failed, and is not stored."""


class DesignProblem(TextEnv):
    """Write a program that solves a problem as well as possible.

        env = DesignProblem(lambda program: float(program.count("a")), task="write many a's", target=3)

    A program that fails has no fitness: its reward is nan. Means ignore it, and failures are counted.
    ``info["raw"]`` is the :class:`Trial` of the last program. Programs that a model wrote should be run by
    :mod:`hunch.sandbox`; its errors count as failures.

    Args:
        evaluate: Runs a program given as text; returns its fitness, a mapping of numbers that includes
            ``"fitness"``, or a :class:`Trial`. An exception counts as the program's error. A trial with an
            error has failed, whatever its fitness.
        task: The task in a sentence.
        interface: What the program must define, with types and units.
        source: Code that the writer may read, such as the environment's without its reward.
        target: Fitness at which the problem counts as solved.
        function: The function that a program must define; a program without it fails at once.
        parameters: Parameters of the function.
        start: An initial program.
        also: Further functions that the program must define, with their parameters.
        plain: The problem in the fewest words; see :class:`~hunch.envs.design.plain.Plain`.
        as_class: The class that a program must define in place of the function. ``evaluate`` gets the program
            as it is written.
        trials: File with finished trials, so that none is run twice; empty for no file, ``"user"`` for
            the user's file.
        version: Version of ``evaluate``, in your own words. Change it with the function, so that trials of
            the earlier one are not used for it.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if ``evaluate`` returns something else.
    """

    offers = ("programs", "events", "raw")
    seeded: bool = False
    """True if trials are random; then the seed is part of a trial's key."""
    version: str = ""
    """Version of how programs are scored; part of a trial's key."""

    def __init__(
        self,
        evaluate: Callable[[str], float | Mapping[str, float] | Trial] | None = None,
        *,
        task: str,
        interface: str = "",
        source: str = "",
        target: float = math.inf,
        function: str = "",
        parameters: tuple[str, ...] = (),
        start: str = "",
        also: Mapping[str, tuple[str, ...]] | None = None,
        plain: Plain | None = None,
        as_class: ClassForm | None = None,
        trials: str = "",
        version: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(1, render_mode)
        self.version = version or self.version
        self.evaluate, self.target = evaluate, target
        self.problem = Problem(
            task, interface, source, function, tuple(parameters), start, also or {}, plain, as_class
        )
        self.task, self.code = task, source
        self.trial: Trial | None = None
        self.trial_seed = 0
        identified = type(self).identity is not DesignProblem.identity
        self.known = Trials(trials, self.identity()) if trials or identified else None

    def unshare(self, memo: dict[int, Any]) -> None:
        """Share everything: a step only replaces what it changes, and copies use the same finished trials."""

    def identity(self) -> str:
        """Return everything on which fitness depends; it identifies the trials of this problem.

        Here: the class's name, what a writer is told, and ``version``, which changes when programs are scored
        differently. If a class does not override this method, its trials are stored only in a named file.
        """
        version = f" (version {self.version})" if self.version else ""
        form = f" as {self.problem.as_class}" if self.problem.as_class else ""
        return f"{type(self).__name__}: {self.problem}{form}{version}"

    def ready(self) -> None:
        """Check, before a model is asked, that programs can be run and scored."""

    def run(self, program: str, seed: int) -> float | Mapping[str, float] | Trial:
        """Run a program and score it; classes of problems override this method.

        Args:
            program: Python code without a :meth:`Problem.flaw`.
            seed: Seed of all randomness.

        Raises:
            ProgramError: if the program fails; other exceptions count as failures, too.
        """
        if self.evaluate is None:
            raise UsageError("A design problem needs a function evaluate(program).")
        return self.evaluate(program)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"A design problem has no reset option {next(iter(options))!r}.")
        self.ready()
        self.trial = None
        self.trial_seed = int(self.np_random.integers(2**31)) if self.seeded else 0
        return Outcome(self.problem.text(), None)

    def _move(self, action: str) -> Outcome:
        self.trial = trial = self._tried(action)
        fitness = math.nan if trial.fitness is None else float(trial.fitness)
        feedback = trial.feedback or trial.error or f"fitness {fitness:g}"
        return Outcome(self.problem.text(), None, fitness, True, fitness >= self.target, event=feedback)

    def _tried(self, program: str) -> Trial:
        """Return the trial of a program: looked up if it is known, otherwise run and stored at once."""
        if wrong := self.problem.flaw(program):
            return Trial(None, error=wrong)
        if self.known is None:
            return self._evaluated(program)[0]
        key = self.known.key(canonical(program) if self.problem.function else program, self.trial_seed)
        if (known := self.known.get(key)) is not None:
            return Trial(**known)
        trial, lasting = self._evaluated(program)
        if lasting:
            self.known.put(key, trial)
        return trial

    def _evaluated(self, program: str) -> tuple[Trial, bool]:
        """Return the trial, and whether it is repeatable: a time-out depends on the load of the machine."""
        try:
            result = self.run(program, self.trial_seed)
        except ProgramError as error:
            why = f"{error.type}: {error.message}{quoted(program, error.line)}"
            return Trial(None, error=why), not error.depends_on_load
        except HunchError:  # not the program's fault
            raise
        except OutsideError as error:
            return Trial(None, error=printable(str(error))), False
        except (Exception, SystemExit, BaseExceptionGroup) as error:  # a program may raise anything
            return Trial(None, error=_described(error)), True
        return _trial(result), True

    def _raw(self) -> Any:
        return self.trial


def is_design_problem(env: str) -> bool:
    """Return whether an environment asks for programs, without making it; False if its class is not known.

    Args:
        env: Id of an environment of Gymnasium.
    """
    try:
        entry = gym.spec(env).entry_point
        made = load_env_creator(entry) if isinstance(entry, str) else entry
    except (gym.error.Error, ImportError, AttributeError, ValueError):
        return False
    return isinstance(made, type) and issubclass(made, DesignProblem)


def _described(error: BaseException) -> str:
    try:
        return printable(f"{type(error).__name__}: {error}")
    except Exception:  # its own __str__ fails
        return type(error).__name__


def _trial(result: Any) -> Trial:
    """Return what ``evaluate`` returned as a trial of plain values; without a finite fitness it failed."""
    if isinstance(result, Mapping):
        if "fitness" not in result:
            names = ", ".join(map(str, result)) or "nothing"
            raise UsageError(f"evaluate returned {names}, but no 'fitness'.")
        result = Trial(result["fitness"], components={k: v for k, v in result.items() if k != "fitness"})
    elif not isinstance(result, Trial):
        result = Trial(_number("a result", result))
    fitness = None if result.fitness is None else _number("the fitness", result.fitness)
    error = result.error
    if not error and (fitness is None or not math.isfinite(fitness)):
        error = f"fitness {fitness} is no number"
    return Trial(
        None if error else fitness,
        str(result.feedback or ""),
        tuple(_number("a score", score) for score in result.scores),
        {str(name): _number(f"the component {name}", value) for name, value in result.components.items()},
        error,
    )


def _number(what: str, value: Any) -> float:
    """Return a number of Python or NumPy as a float.

    Raises:
        UsageError: if it is something else, such as a text.
    """
    if isinstance(value, int) and abs(value) >= 2**1023:
        return math.inf if value > 0 else -math.inf
    if isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
        return float(value)
    raise UsageError(
        "evaluate must return a number, numbers with 'fitness', or a Trial of numbers; "
        f"{what} is {str(value)[:60]!r} ({type(value).__name__})."
    )
