"""A grid with four things whose secret property is visible only when they are examined; and its skills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np

from hunch.core import State, UsageError
from hunch.envs.base import Outcome, TextEnv

Cell: TypeAlias = tuple[int, int]
Question = Literal["conditional", "search"]
Verb = Literal["examine", "pick up"]

SIZE: Final = 9
SIGHT: Final = 2
"""Rows and columns in view to each side: five by five cells."""
VANTAGE: Final = ((2, 2), (2, 6), (6, 2), (6, 6))
"""Vantage points, from which together every cell is in view."""
THINGS: Final = ("vase", "ring", "book", "lamp")
MOVES: Final[dict[str, Cell]] = {
    "go north": (-1, 0),
    "go south": (1, 0),
    "go east": (0, 1),
    "go west": (0, -1),
}
VERBS: Final[tuple[Verb, ...]] = get_args(Verb)
ACTIONS: Final = (*MOVES, *VERBS)
GOOD, BAD = "warm", "cold"
"""Words for the secret property."""
LOOKS: Final = (("red", "blue"), ("plain", "striped"), ("heavy", "light"), ("new", "worn"))
"""Other visible properties, which mean nothing."""
STEPS: Final = 40
"""Maximum steps of a skill."""
REPORTS: Final = ("It is good.", "It is bad.")
"""What is reported of a thing in the examples of plans: of a good one, and of a bad one."""
OTHERS: Final = ("cup", "key", "coin", "box", "hat", "pen", "shoe", "bowl", "ball", "bell", "comb", "plate")
"""The things of the examples of plans, none of which is in the room."""


def conditional(asked: str, yes: str, no: str) -> str:
    """Return the instruction to pick up one thing if another is good, else a third."""
    return f"If the {asked} is good, pick up the {yes}, otherwise pick up the {no}."


def search(things: Sequence[str]) -> str:
    """Return the instruction to pick up the good one of some things."""
    *first, last = (f"the {thing}" for thing in things)
    return f"Pick up the good one of {', '.join(first)} and {last}."


def _examples(question: Question) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield instructions about other things, with plans by rule that heed the reports.

    In every second condition the thing is good. In a search each place in the list is as often the good one;
    the last one is not examined if the others are bad.
    """
    for first in range(len(OTHERS)):
        one, two, three, four = (OTHERS[(first + 5 * i) % len(OTHERS)] for i in range(4))
        if question == "conditional":
            good = first % 2 == 0
            last = f"pick up the {two if good else three}"
            yield conditional(one, two, three), (_examined(one, good), last)
        else:
            looked, right = (one, two, three), first % 4
            steps = [_examined(thing, i == right) for i, thing in enumerate(looked) if i <= right]
            last = f"pick up the {(*looked, four)[right]}"
            yield search((*looked, four)), (*steps, last)


def _examined(thing: str, good: bool) -> str:
    """Return the step of a plan that examines a thing, with the report on it."""
    return f"examine the {thing}\n{REPORTS[0 if good else 1]}"


@dataclass(frozen=True)
class Room:
    """The state of the room.

    Attributes:
        robot: Cell of the robot.
        cells: Cell of each thing, in the order of :data:`THINGS`.
        good: Whether each thing has the good property.
        looks: Other visible property of each thing.
        last: The last verb that was applied to a thing, and the thing; "" before.
        known: The things that were in view from a vantage point.
        looked: The vantage points that were visited.
    """

    robot: Cell
    cells: tuple[Cell, ...]
    good: tuple[bool, ...]
    looks: tuple[tuple[str, ...], ...]
    last: tuple[str, str] = ("", "")
    known: tuple[str, ...] = ()
    looked: tuple[Cell, ...] = ()

    @property
    def here(self) -> str | None:
        """The thing on the robot's cell."""
        return THINGS[self.cells.index(self.robot)] if self.robot in self.cells else None

    def away(self, thing: str) -> Cell:
        """Return rows and columns from the robot to a thing."""
        row, column = self.cells[THINGS.index(thing)]
        return row - self.robot[0], column - self.robot[1]

    def noticed(self) -> Room:
        """Return the room with the things in view remembered, if this is a vantage point."""
        if self.robot not in VANTAGE:
            return self
        known = tuple(t for t in THINGS if t in self.known or self.sees(t))
        looked = tuple(spot for spot in VANTAGE if spot in self.looked or spot == self.robot)
        return replace(self, known=known, looked=looked)

    def towards(self, thing: str) -> Cell:
        """Return rows and columns to a known thing, or else to the nearest vantage point not visited."""
        if thing in self.known:
            return self.away(thing)
        left = [spot for spot in VANTAGE if spot not in self.looked] or VANTAGE
        row, column = self.robot
        return min(((r - row, c - column) for r, c in left), key=lambda d: (abs(d[0]) + abs(d[1]), d))

    def sees(self, thing: str) -> bool:
        """Return whether a thing is in view."""
        return max(map(abs, self.away(thing))) <= SIGHT


def draw(rng: np.random.Generator, question: Question) -> Room:
    """Return a random room; in a search only one thing is good."""
    spots = rng.choice(SIZE * SIZE, size=len(THINGS) + 1, replace=False)
    robot, *cells = [divmod(int(spot), SIZE) for spot in spots]
    one = int(rng.integers(len(THINGS)))
    alone = question == "search"
    good = tuple(i == one if alone else bool(rng.random() < 0.5) for i in range(len(THINGS)))
    looks = tuple(tuple(pair[rng.integers(2)] for pair in LOOKS) for _ in THINGS)
    return Room(robot, tuple(cells), good, looks).noticed()


def step(room: Room, action: str) -> tuple[Room, str]:
    """Take an action; return the next room, and what was shown."""
    if action in MOVES:
        row, column = (x + d for x, d in zip(room.robot, MOVES[action], strict=True))
        there = (min(max(row, 0), SIZE - 1), min(max(column, 0), SIZE - 1))
        return replace(room, robot=there, last=("", "")).noticed(), ""
    thing = room.here
    if thing is None:
        return replace(room, last=("", "")), "There is nothing here."
    room = replace(room, last=(action, thing))
    if action == "pick up":
        return room, f"You pick up the {thing}."
    i = THINGS.index(thing)
    return room, f"The {thing} is {', '.join((*room.looks[i], GOOD if room.good[i] else BAD))}."


def described(room: Room) -> str:
    """Describe what is in view."""
    lines = [f"You stand at row {room.robot[0]}, column {room.robot[1]}."]
    for thing in THINGS:
        if room.sees(thing):
            row, column = room.away(thing)
            lines.append(f"The {thing} is {row:+d} rows and {column:+d} columns from you.")
    return "\n".join(lines)


class _Grid(TextEnv):
    """Base class of both environments, with a room."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"]}  # type: ignore[misc]
    offers = ("events", "raw")
    room: Room

    def _raw(self) -> Room:
        return self.room

    def _grid(self) -> list[str]:
        rows = [["."] * SIZE for _ in range(SIZE)]
        for thing, (row, column) in zip(THINGS, self.room.cells, strict=True):
            rows[row][column] = thing[0]
        rows[self.room.robot[0]][self.room.robot[1]] = "@"
        return ["".join(row) for row in rows]


class SecretProperty(_Grid):
    """Pick up the one of four things that has a secret property; examine to see it.

    In a conditional task the property of one says which of two others is right; in a search one of the four
    is good. Picking up a thing ends the episode, with reward 1 if it is the right one.

    Args:
        question: conditional or search.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or ``"rgb_array"``; the robot is ``@``.

    Raises:
        UsageError: if there is no such question.
    """

    def __init__(
        self,
        *,
        question: Question = "conditional",
        max_steps: int = 200,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        if question not in get_args(Question):
            raise UsageError(f"question must be {' or '.join(get_args(Question))}, not {question!r}.")
        self.question: Question = question
        self.examples = tuple(_examples(question))
        self.right = ""

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"SecretProperty has no reset option {next(iter(options))!r}.")
        self.room = draw(self.np_random, self.question)
        if self.question == "search":
            self.task = search(THINGS)
            self.right = THINGS[self.room.good.index(True)]
        else:
            asked, yes, no = (THINGS[i] for i in self.task_random.permutation(len(THINGS))[:3])
            self.task = conditional(asked, yes, no)
            self.right = yes if self.room.good[THINGS.index(asked)] else no
        return Outcome(described(self.room), ACTIONS)

    def _move(self, action: str) -> Outcome:
        self.room, event = step(self.room, action)
        over = self.room.last[0] == "pick up"
        success = over and self.room.last[1] == self.right
        shown = f"{described(self.room)}\n{event}" if event else described(self.room)
        return Outcome(shown, ACTIONS, float(success), over, success, event=event)

    def _place(self, raw: Any) -> Outcome:
        self.room = raw
        return Outcome(described(self.room), ACTIONS)


@dataclass(frozen=True)
class Subtask:
    """Examining or picking up a thing; see :class:`hunch.roles.planner.skills.Subtask`."""

    verb: Verb
    aim: str

    steps: ClassVar[int] = STEPS
    words: ClassVar[Mapping[str, str]] = {}

    @property
    def name(self) -> str:
        """Name for the planner."""
        return f"{self.verb} the {self.aim}"

    def reached(self, before: Any, after: Any) -> bool:
        """Return whether the step from one room to another did it; False without a step."""
        return before is not after and after.last == (self.verb, self.aim)

    def view(self, state: State) -> State:
        """Return the skill's observation: where the aim is, or where to look for it, from memory."""
        room: Room = state.raw
        row, column = room.towards(self.aim)
        what = "aim" if self.aim in room.known else "next place to look from"
        text = f"The {what} is {row:+d} rows and {column:+d} columns from you."
        return State(text, self.verb, (*MOVES, self.verb), raw=room, stream=state.stream)


class SecretSkill(_Grid):
    """Learn to examine, or to pick up, a thing that may be out of view.

    The thing is drawn anew in every episode, and not named. Success has reward 1 and ends the episode;
    picking up another thing ends it, too. For planners, :attr:`subtasks` lists the skills of an agent trained
    here.

    Args:
        verb: examine or pick up.
        max_steps: Step limit of an episode; a planner allows 40 steps.
        render_mode: ``"ansi"`` or ``"rgb_array"``.

    Raises:
        UsageError: if there is no such verb.
    """

    def __init__(
        self, *, verb: Verb = "examine", max_steps: int = STEPS, render_mode: str | None = None
    ) -> None:
        super().__init__(max_steps, render_mode)
        if verb not in VERBS:
            raise UsageError(f"verb must be {' or '.join(VERBS)}, not {verb!r}.")
        self.task = self.verb = verb
        self.subtasks = tuple(Subtask(verb, thing) for thing in THINGS)
        self.subtask = self.subtasks[0]

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"SecretSkill has no reset option {next(iter(options))!r}.")
        self.subtask = self.subtasks[int(self.task_random.integers(len(self.subtasks)))]
        self.room = draw(self.np_random, "conditional")
        if self.np_random.random() < 0.5:  # as in the middle of a plan, when everything has been seen
            self.room = replace(self.room, known=THINGS)
        return self._seen()

    def _move(self, action: str) -> Outcome:
        before = self.room
        self.room, event = step(before, action)
        success = self.subtask.reached(before, self.room)
        wrong = self.room.last[0] == "pick up" and not success
        return self._seen(event, success, wrong)

    def _seen(self, event: str = "", success: bool = False, wrong: bool = False) -> Outcome:
        view = self.subtask.view(State("", raw=self.room))
        return Outcome(view.observation, view.actions, float(success), success or wrong, success, event=event)
