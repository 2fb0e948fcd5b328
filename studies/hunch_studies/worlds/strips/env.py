"""Planning problems as Gymnasium environments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch_studies.worlds.strips import problems
from hunch_studies.worlds.strips.grounding import Operator
from hunch_studies.worlds.strips.pddl import Problem, read, read_domain, read_problem
from hunch_studies.worlds.strips.search import plan
from hunch_studies.worlds.strips.task import Task
from hunch_studies.worlds.strips.telling import telling
from hunch_studies.worlds.strips.wording import PDDL, WORDINGS, Wording

Words = Literal["plain", "mystery", "pddl"]


class Planning(TextEnv):
    """Reach the goal of a planning problem with the actions of its domain.

    The observation lists all true facts; the actions are those that apply now, in the order of the domain and
    of the objects. Reward 1 when the goal is reached, which ends the episode, otherwise 0. A state in which
    no action applies also ends it.

    Attributes:
        grounded: The problem in play, with its actions grounded.
        state: The state, as bits of ``grounded.ground.facts``.
        wording: How it is put into words.
    """

    offers = ("events", "raw")
    grounded: Task
    state: int

    def __init__(self, wording: Wording, max_steps: int, render_mode: str | None) -> None:
        super().__init__(max_steps, render_mode)
        self._wording = wording

    def _next(self, options: Mapping[str, Any]) -> Problem:
        """The problem of the next episode."""
        raise NotImplementedError

    @property
    def rules(self) -> str:
        """Return the requirements and effects of each action, one per line, in the environment's words."""
        return self._wording.rules(self.grounded.problem.domain)

    def oracle(self) -> tuple[str, ...] | None:
        """Return the actions of a plan to the goal; None if there is none.

        It is a shortest plan if breadth-first search finds it within 20,000 states.

        Raises:
            HunchError: if none was found within a further 200,000 states of greedy search.
        """
        found = plan(self.grounded, self.state)
        return None if found is None else self._telling.actions(found)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        grounded = Task(self._next(options))
        if grounded.solved(grounded.init):
            raise UsageError("The goal of the problem holds at the start, so there is nothing to do.")
        if not grounded.applicable(grounded.init):
            raise UsageError("No action of the problem applies at the start.")
        self.grounded, self._telling = grounded, telling(grounded, self._wording)
        self.state = grounded.init
        self.task = f"reach a state in which {self._wording.goal(grounded.problem.goal)}"
        return self._outcome()

    def _move(self, action: str) -> Outcome:
        operator: Operator = self._telling.operators[action]
        self.state = operator.after(self.state)
        return self._outcome()._replace(event=f"You {action}.")

    def _raw(self) -> int:
        return self.state

    def _place(self, raw: Any) -> Outcome:
        self.state = int(raw)
        return self._outcome()

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy all but the grounded problem and its texts, which nothing changes."""
        for name in ("grounded", "_telling"):
            if name in vars(self):  # from the first episode on
                memo[id(vars(self)[name])] = vars(self)[name]
        super().unshare(memo)

    def _outcome(self) -> Outcome:
        solved = self.grounded.solved(self.state)
        actions = self._telling.actions(self.grounded.applicable(self.state))
        text = self._telling.state(self.state)
        return Outcome(text, actions, float(solved), terminated=solved or not actions, success=solved)


class Strips(Planning):
    """Solve planning problems that are given in PDDL.

    Files may use :strips, :typing, :equality and :negative-preconditions. If there are several problems, one
    is drawn at each reset; ``info["problem"]`` names it, and ``reset(options={"problem": i})`` plays
    number ``i``.

    Args:
        domain: A PDDL file. Default: Blocksworld.
        problem: A PDDL file of a problem, or a folder with such files. Default: Sussman's anomaly.
        words: ``"pddl"`` writes states and actions as in the files. The words of Blocksworld and Logistics
            can be used for domains with the same names: ``"blocksworld"``, ``"blocksworld-mystery"``,
            ``"logistics"``, ``"logistics-mystery"``.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if a file is missing or damaged, or uses other features of PDDL.
    """

    def __init__(
        self,
        *,
        domain: str | Path | None = None,
        problem: str | Path | None = None,
        words: str = "pddl",
        max_steps: int = 100,
        render_mode: str | None = None,
    ) -> None:
        if (domain is None) != (problem is None):
            raise UsageError("Give both a domain and a problem, or neither.")
        super().__init__(_wording(words, WORDINGS), max_steps, render_mode)
        path = domain if domain is not None else problems.FOLDER / "blocksworld.pddl"
        self.domain = read_domain(read(path), f"The domain {str(path)!r}")
        self.files = _files(Path(problem if problem is not None else problems.FOLDER / "sussman.pddl"))
        self._read: dict[int, Problem] = {}
        self._number = 0
        self._problem(0)  # A damaged file should be reported now and not in the middle of a run.

    def _next(self, options: Mapping[str, Any]) -> Problem:
        if unknown := set(options) - {"problem"}:
            raise UsageError(f"There is no reset option {unknown.pop()!r}; there is: problem.")
        number = (
            options["problem"] if "problem" in options else int(self.task_random.integers(len(self.files)))
        )
        if number not in range(len(self.files)):
            raise UsageError(
                f"There is no problem {number!r}: there are problems 0 to {len(self.files) - 1}."
            )
        problem = self._problem(number)
        self._number = number
        return problem

    def _problem(self, number: int) -> Problem:
        if number not in self._read:
            path = self.files[number]
            self._read[number] = read_problem(read(path), self.domain, f"The problem {str(path)!r}")
        return self._read[number]

    def _extras(self) -> dict[str, Any]:
        return {"problem": self.files[self._number].name}


def _wording(words: str, known: Mapping[str, Wording]) -> Wording:
    if words not in known:
        raise UsageError(f"words must be {' or '.join(known)}, not {words!r}.")
    return known[words]


def _files(path: Path) -> Sequence[Path]:
    """The file, or the files of a folder in the order of the numbers in their names."""
    path = path.expanduser()
    if not path.is_dir():
        return [path]
    files = [file for file in path.glob("*.pddl") if "domain" not in file.name]
    if not files:
        raise UsageError(f"The folder {str(path)!r} has no PDDL files of problems.")
    return sorted(files, key=lambda file: [int(part or 0) for part in re.findall(r"\d+", file.name)] + [0])


class Generated(Planning):
    """A planning problem that is drawn at each reset."""

    least: ClassVar[Mapping[str, int]] = {}

    def __init__(
        self, wording: Wording, sizes: dict[str, int], max_steps: int, render_mode: str | None
    ) -> None:
        super().__init__(wording, max_steps, render_mode)
        for name, size in sizes.items():
            least = self.least.get(name, 1)
            if size < least:
                raise UsageError(f"{name} must be at least {least}, not {size}.")
        self.sizes = sizes

    def _draw(self) -> Problem:
        raise NotImplementedError

    def _next(self, options: Mapping[str, Any]) -> Problem:
        if options:
            raise UsageError(f"{type(self).__name__} has no reset option {next(iter(options))!r}.")
        return self._draw()


class Logistics(Generated):
    """Bring packages to other places, by truck and by airplane.

    Args:
        cities: How many, each with a truck.
        locations: How many in each city; the first is its airport.
        packages: How many.
        airplanes: How many.
        words: ``"plain"``, PlanBench's words; ``"mystery"``, its other names for the same; or ``"pddl"``.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if an option is out of range.
    """

    def __init__(
        self,
        *,
        cities: int = 2,
        locations: int = 2,
        packages: int = 1,
        airplanes: int = 1,
        words: Words = "plain",
        max_steps: int = 100,
        render_mode: str | None = None,
    ) -> None:
        named = {"plain": WORDINGS["logistics"], "mystery": WORDINGS["logistics-mystery"], "pddl": PDDL}
        sizes = {"cities": cities, "locations": locations, "packages": packages, "airplanes": airplanes}
        super().__init__(_wording(words, named), sizes, max_steps, render_mode)
        if cities * locations < 2:
            raise UsageError("There must be at least two locations in all.")
        self._anonymous = words == "mystery"

    def _draw(self) -> Problem:
        return problems.logistics(self.task_random, **self.sizes, anonymous=self._anonymous)


class Gripper(Generated):
    """Carry balls from room to room with two grippers.

    Args:
        balls: How many.
        rooms: How many.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if an option is out of range.
    """

    least: ClassVar[Mapping[str, int]] = {"rooms": 2}

    def __init__(
        self, *, balls: int = 4, rooms: int = 2, max_steps: int = 100, render_mode: str | None = None
    ) -> None:
        super().__init__(PDDL, {"balls": balls, "rooms": rooms}, max_steps, render_mode)

    def _draw(self) -> Problem:
        return problems.gripper(self.task_random, **self.sizes)


class Ferry(Generated):
    """Take cars to other places with a ferry that holds one.

    Args:
        cars: How many.
        places: How many.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if an option is out of range.
    """

    least: ClassVar[Mapping[str, int]] = {"places": 2}

    def __init__(
        self, *, cars: int = 3, places: int = 3, max_steps: int = 100, render_mode: str | None = None
    ) -> None:
        super().__init__(PDDL, {"cars": cars, "places": places}, max_steps, render_mode)

    def _draw(self) -> Problem:
        return problems.ferry(self.task_random, **self.sizes)


class Miconic(Generated):
    """Take passengers to their floors with a lift.

    Args:
        floors: How many.
        passengers: How many.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if an option is out of range.
    """

    least: ClassVar[Mapping[str, int]] = {"floors": 2}

    def __init__(
        self, *, floors: int = 4, passengers: int = 2, max_steps: int = 100, render_mode: str | None = None
    ) -> None:
        super().__init__(PDDL, {"floors": floors, "passengers": passengers}, max_steps, render_mode)

    def _draw(self) -> Problem:
        return problems.miconic(self.task_random, **self.sizes)
