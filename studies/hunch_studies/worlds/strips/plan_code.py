"""Generalised planning: one program plans for every problem of a domain (Silver et al., AAAI 2024)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from hunch.core import UsageError
from hunch.envs.design.code import quoted
from hunch.envs.design.plain import Plain
from hunch.envs.design.problem import DesignProblem, Trial
from hunch.envs.design.running import box
from hunch.ranges import PositiveInt
from hunch.sandbox import ProgramError, ProgramTimeout, Sandbox
from hunch.sandbox.errors import printable
from hunch_studies.worlds.strips import problems as draws
from hunch_studies.worlds.strips.pddl import ANYTHING, Action, Atom, Problem, read
from hunch_studies.worlds.strips.problems import FOLDER, Rng
from hunch_studies.worlds.strips.task import Task, Verdict
from hunch_studies.worlds.strips.wording import listed

Name = Literal["gripper", "ferry", "miconic", "logistics", "blocksworld"]
Split = Literal["train", "test"]
Draw: TypeAlias = Callable[[Rng, int], Problem]
"""Draws a problem with so many things to bring to their goals."""

FUNCTION: Final = "get_plan"
PARAMETERS: Final = ("objects", "init", "goal")
SIZES: Final[Mapping[Split, tuple[int, int]]] = {"train": (2, 5), "test": (6, 12)}
"""Least and greatest number of things to bring to their goals; held-out problems are larger."""
NUMBERS: Final[Mapping[Split, int]] = {"train": 10, "test": 30}
"""Problems of a split, unless another number is asked for (paper: 30 held-out ones)."""
SHOWN: Final = 2
"""Example problems in the paper's request."""
LISTED: Final = 40
"""Facts of a problem up to which feedback lists it, so that it fits into a small context (ours)."""


@dataclass(frozen=True)
class Given:
    """A domain that comes with Hunch.

    Attributes:
        story: What it is about, in a sentence.
        draw: Draws a problem.
    """

    story: str
    draw: Draw


DOMAINS: Final[Mapping[Name, Given]] = {
    "gripper": Given(
        "A robot with two grippers carries balls from room to room.",
        lambda rng, balls: draws.gripper(rng, balls, rooms=int(rng.integers(2, balls + 2))),
    ),
    "ferry": Given(
        "A ferry takes one car at a time from place to place.",
        lambda rng, cars: draws.ferry(rng, cars, places=int(rng.integers(2, cars + 2))),
    ),
    "miconic": Given(
        "A lift takes passengers from the floors where they wait to the floors where they want to go.",
        lambda rng, passengers: draws.miconic(rng, int(rng.integers(2, passengers + 3)), passengers),
    ),
    "logistics": Given(
        "Trucks carry packages between the locations of their city, and airplanes between airports.",
        lambda rng, packages: draws.logistics(
            rng,
            cities=int(rng.integers(2, 4)),
            locations=int(rng.integers(1, 4)),
            packages=packages,
            airplanes=1,
            anonymous=False,
        ),
    ),
    "blocksworld": Given(
        "Blocks stand on a table or on each other, and a hand holds one of them at a time.",
        lambda rng, blocks: draws.blocksworld(rng, blocks + 1),
    ),
}


class PlanCode(DesignProblem):
    """Write one program that plans for every problem of a domain.

    ``get_plan(objects, init, goal)`` gets the objects and the facts of start and goal as sets of tuples, and
    returns a list of actions. The fitness is the share of the problems that its plans solve; plans are
    executed here. The feedback shows the first problem that is not solved, and why.

    Args:
        domain: ``gripper``, ``ferry``, ``miconic``, ``logistics`` or ``blocksworld``.
        split: ``train``, or ``test`` for held-out problems, which are larger.
        problems: Number of problems. Default: 10 for ``train``, 30 for ``test``.
        blank: Leave out of the plain request what the domain is about, what actions need and change, and what
            a plan is for: the control that shows whether a writer reads them.
        trials: See :class:`~hunch.envs.design.problem.DesignProblem`.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if there is no such domain or split, or if there are to be no problems.
    """

    version = "1"
    """Identifies stored trials. It changes with whatever changes the trial of a program."""

    def __init__(
        self,
        *,
        domain: Name = "ferry",
        split: Split = "train",
        problems: PositiveInt | None = None,
        blank: bool = False,
        trials: str = "",
        render_mode: str | None = None,
    ) -> None:
        if domain not in DOMAINS or split not in SIZES:
            raise UsageError(
                f"PlanCode has the domains {', '.join(DOMAINS)} and the splits {', '.join(SIZES)}, not "
                f"{domain!r} and {split!r}."
            )
        if problems is not None and problems < 1:
            raise UsageError(f"PlanCode needs at least one problem, not {problems}.")
        self.tasks = drawn(domain, split, NUMBERS[split] if problems is None else problems)
        self.ran_out = False
        examples = [task.problem for task in drawn(domain, "train", SHOWN)]
        super().__init__(
            task=_paper_task(domain, examples),
            interface=PAPER_INTERFACE,
            function=FUNCTION,
            parameters=PARAMETERS,
            plain=_plain(DOMAINS[domain].story, examples[0], blank),
            target=1.0,
            trials=trials,
            render_mode=render_mode,
        )

    def identity(self) -> str:
        """Return the version of the scoring, and the problems."""
        return f"{self.version} {[in_pddl(task.problem) for task in self.tasks]}"

    def ready(self) -> None:
        """Start the sandbox."""
        box()

    def run(self, program: str, seed: int) -> Trial:
        """Plan for each problem in the sandbox, and execute the plans here."""
        results = list(planned(box(), program, self.tasks))
        self.ran_out = any(result.ran_out for result in results)
        errors = [result.error for result in results if result.error]
        if len(errors) == len(results):
            return Trial(None, error=errors[0])
        solved = [float(result.solved) for result in results]
        feedback = f"{sum(solved):.0f} of {len(solved)} problems are solved."
        for task, result in zip(self.tasks, results, strict=True):
            if not result.solved:
                feedback += f"\nA problem that is not solved:{_listing(task.problem)}\n{result.why}"
                break
        return Trial(float(np.mean(solved)), feedback, tuple(solved), {"crashed": len(errors) / len(results)})

    def _evaluated(self, program: str) -> tuple[Trial, bool]:
        """Return the trial, and whether it is repeatable; a time-out depends on the load of the machine."""
        trial, lasting = super()._evaluated(program)
        return trial, lasting and not self.ran_out


def drawn(domain: Name, split: Split, n: int) -> list[Task]:
    """Draw problems; the same arguments give the same problems, and of a larger ``n`` they come first."""
    rng = np.random.default_rng([list(DOMAINS).index(domain), split == "test"])
    least, most = SIZES[split]
    return [Task(DOMAINS[domain].draw(rng, int(rng.integers(least, most + 1)))) for _ in range(n)]


# ---- running a program ------------------------------------------------------------------------------------


class Planned(NamedTuple):
    """A program on a problem.

    Attributes:
        solved: True if its plan reaches the goal; actions may be written with or without parentheses.
        strict: True if all actions of such a plan are tuples or in parentheses, as the paper's check wants.
        error: The error that the program raised; empty if it raised none.
        why: Why the problem is not solved, in words; empty if it is.
        ran_out: True if the program ran out of time, in this problem or in one before, or if the system
            killed it.
    """

    solved: bool
    strict: bool
    error: str
    why: str
    ran_out: bool = False


def planned(sandbox: Sandbox, program: str, tasks: Iterable[Task]) -> Iterator[Planned]:
    """Run a program on problems, and execute its plans; after a time-out it is not run again.

    Args:
        sandbox: Where the program runs.
        program: A program without a flaw.
        tasks: The problems.
    """
    error = ""
    for task in tasks:
        if error:
            yield Planned(False, False, error, error, ran_out=True)
            continue
        try:
            with sandbox.load(program, FUNCTION) as get_plan:
                returned = get_plan(*inputs(task.problem))
        except ProgramError as raised:
            message = f"{raised.type}: {raised.message}{quoted(program, raised.line)}"
            if isinstance(raised, ProgramTimeout):
                error = message
            yield Planned(False, False, message, message, raised.depends_on_load)
            continue
        yield _executed(returned, task)


def _executed(returned: Any, task: Task) -> Planned:
    """Execute what a program returned as a plan."""
    plan = actions_of(returned)
    if plan is None:
        return Planned(False, False, "", "What was returned is no list of actions, each a tuple of texts.")
    verdict = task.verify([atom for atom, _ in plan])
    if verdict.valid:
        return Planned(True, all(marked for _, marked in plan), "", "")
    return Planned(False, False, "", _why(verdict, len(plan)))


def inputs(problem: Problem) -> tuple[Any, ...]:
    """Return the objects (with types, if the domain has any), the initial state and the goal."""
    typed = set(problem.domain.supertypes) - {"object"}
    objects: set[Any] = {(name, types[0]) for name, types in problem.objects.items()}
    return (
        objects if typed else set(problem.objects),
        {tuple(atom) for atom in problem.init},
        {tuple(atom) for atom in problem.goal.positive},
    )


def actions_of(returned: Any) -> list[tuple[Atom, bool]] | None:
    """Return a plan's actions, and whether each is a tuple or in parentheses; None if it is not a plan."""
    if not isinstance(returned, (list, tuple)):
        return None
    plan: list[tuple[Atom, bool]] = []
    for action in returned:
        if isinstance(action, str):
            marked = bool(re.fullmatch(r"\([^()]+\)", action.strip()))
            plan.append((tuple(action.strip().strip("()").split()), marked))
        elif isinstance(action, (tuple, list)) and action and all(isinstance(x, str) for x in action):
            plan.append((tuple(action), True))
        else:
            return None
    return plan


def _why(verdict: Verdict, actions: int) -> str:
    """Return in words why a plan is not valid."""
    reason = printable(verdict.reason)  # it shows the action, which may be of any length
    parts = [f"{reason[0].upper()}{reason[1:]}"]
    if verdict.step < actions:
        parts[0] = f"Action {verdict.step + 1} of {actions} does not apply: {reason}"
    if verdict.lacking:
        parts.append(f"these facts do not hold: {_facts(verdict.lacking)}")
    if verdict.offending:
        parts.append(f"these hold and should not: {_facts(verdict.offending)}")
    return "; ".join(parts) + "."


# ---- what a writer reads ----------------------------------------------------------------------------------

PAPER_INTERFACE: Final = """The code should be of the form

def get_plan(objects, init, goal):
    # Your code here
    return plan

where
    - `objects` is a set of objects (string names), or of tuples (object name, type name) if there are types
    - `init` is a set of ground atoms represented as tuples of predicate names and arguments (e.g., \
('predicate-foo', 'object-bar', ...))
    - `goal` is also a set of ground atoms represented in the same way
    - `plan` is a list of actions, where each action is a ground operator represented as a string (e.g., \
'(operator-baz object-qux ...)')"""


def _paper_task(domain: str, examples: Sequence[Problem]) -> str:
    """Return the paper's request: domain and examples in PDDL, and the question for a strategy.

    The paper first has the domain summarised, and the strategy told, in two turns before this one.
    """
    ask = (
        "There is a simple strategy for solving all problems in this domain without using search. "
        "Implement the strategy as a Python function."
    )
    text = read(FOLDER / f"{domain}.pddl").strip()
    return "\n".join(["Domain:", text, "Example problems:", *map(in_pddl, examples), ask])


def in_pddl(problem: Problem) -> str:
    """Return a problem in PDDL."""
    typed = {name: "" if types == ANYTHING else f" - {types[0]}" for name, types in problem.objects.items()}
    objects = " ".join(f"{name}{kind}" for name, kind in typed.items())
    init, goal = (
        " ".join(f"({' '.join(atom)})" for atom in sorted(atoms))
        for atoms in (problem.init, problem.goal.positive)
    )
    return (
        f"(define (problem {problem.name}-problem) (:domain {problem.domain.name})\n"
        f"  (:objects {objects})\n  (:init {init})\n  (:goal (and {goal})))"
    )


def _plain(story: str, example: Problem, blank: bool) -> Plain:
    """Return the plain request; with ``blank`` without anything on what actions do and a plan is for."""
    actions = list(example.domain.actions.values())
    what = "" if blank else ", what has to be true before, and what they change"
    parts = [
        "A fact is a tuple of texts, and so is an action. init and goal are sets of facts. "
        f"The actions{what}:",
        "\n".join(f"- {_rule(action, blank)}" for action in actions),
        f"An example of what the function gets:{_listing(example)}",
    ]
    returns = f"It returns a list of actions, each a tuple such as {_form(actions[0])}."
    if not blank:
        parts.insert(0, story)
        returns += (
            " Executed one after the other from init, they have to lead to a state in which every fact of "
            "goal holds. It has to work for every problem of this kind, with any number of objects."
        )
    return Plain("\n\n".join(parts), PARAMETERS, returns)


def _rule(action: Action, blank: bool) -> str:
    """Return an action's form, and unless it is left blank what it needs and changes."""
    form = _form(action)
    if blank:
        return form
    kinds = [
        f"{_placeholder(variable)} a {' or '.join(types)}"
        for variable, types in action.parameters
        if types != ANYTHING
    ]
    needs = [_tuple(map(_placeholder, atom)) for atom in action.condition.positive]
    needs += [f"{_placeholder(a)} and {_placeholder(b)} differ" for a, b in action.condition.unequal]
    begin = [_tuple(map(_placeholder, atom)) for atom in action.add]
    end = [_tuple(map(_placeholder, atom)) for atom in action.delete]
    where = f" with {listed(kinds)}" if kinds else ""
    text = f"{form}{where}: needs {listed(needs)}; makes true {listed(begin)}"
    return f"{text}; makes false {listed(end)}" if end else text


def _form(action: Action) -> str:
    """Return an action as a tuple with placeholders for its objects."""
    return _tuple([action.name, *(_placeholder(variable) for variable, _ in action.parameters)])


def _placeholder(term: str) -> str:
    """Return a variable as a placeholder; other terms stay."""
    return f"<{term[1:]}>" if term.startswith("?") else term


def _tuple(terms: Iterable[str]) -> str:
    """Return a tuple as in Python, with placeholders as they are; one of one term has its comma."""
    shown = [term if term.startswith("<") else f'"{term}"' for term in terms]
    return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"


def _facts(atoms: Iterable[Atom]) -> str:
    return ", ".join(_tuple(atom) for atom in sorted(atoms))


def _listing(problem: Problem) -> str:
    """Return what a program gets for a problem, as in Python; of a large problem the goal alone."""
    objects, init, goal = inputs(problem)
    lines = [f"goal = {{{_facts(goal)}}}"]
    if len(init) <= LISTED:
        things = ", ".join(_tuple(x) if isinstance(x, tuple) else f'"{x}"' for x in sorted(objects))
        lines = [f"objects = {{{things}}}", f"init = {{{_facts(init)}}}", *lines]
    return "".join(f"\n{line}" for line in lines)
