"""A home of 7 x 7 cells with labelled things, and tasks in temporal logic.

The setting follows Quartey, Shah and Konidaris, "Exploiting Contextual Structure to Generate Useful Auxiliary
Tasks", 2023; things, rooms and tasks are our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.ranges import NonNegativeInt, PositiveInt
from hunch_contrib.goal.temporal import FALSE, TRUE, Automaton, parse, propositions, show

SIZE: Final = 7
ROOMS: Final[Mapping[tuple[int, int], tuple[str, ...]]] = {
    (0, 0): ("stove", "kettle", "fridge", "mug"),
    (0, 4): ("bed", "pillow", "blanket", "wardrobe"),
    (4, 0): ("sofa", "television", "armchair", "bookshelf"),
    (4, 4): ("shower", "toilet", "towel", "bathtub"),
}
"""The first cell of each room of 3 x 3 cells, and the things in the room; between the rooms is a hall."""
THINGS: Final = tuple(thing for things in ROOMS.values() for thing in things)
DOORS: Final = (1, 5)
"""The columns in which rooms open to the hall, where they have walls."""
MOVES: Final = {"go north": (-1, 0), "go south": (1, 0), "go west": (0, -1), "go east": (0, 1)}


class HomeGrid(TextEnv):
    """Walk to things in a home in the order that a temporal formula asks for.

    Kitchen, bedroom, living room and bathroom lie in the corners of a grid of 7 x 7 cells, with four
    things in each, on cells drawn from ``home_seed``. A thing is reached by standing on its cell. The
    agent starts in the middle. The episode ends with reward 1 and success when the formula is
    satisfied, and without them when it can no longer be satisfied. ``info["event"]`` is the thing that
    was reached, ``info["raw"]`` row and column, and the task is the formula.

    Args:
        goal: The formula, as :func:`hunch_contrib.goal.temporal.parse` reads it, with things as propositions.
        home_seed: Seed of the things' cells.
        walls: Put walls around each room, with one door to the hall, in the middle of its northern or
            southern side. By default there are none.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or ``"rgb_array"``.

    Raises:
        UsageError: if the formula cannot be read, names an unknown thing, or cannot be satisfied here.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"]}  # type: ignore[misc]
    offers = ("events", "raw")
    things = THINGS

    def __init__(
        self,
        *,
        goal: str = "F (kettle & F (mug & F sofa))",
        home_seed: NonNegativeInt = 0,
        walls: bool = False,
        max_steps: PositiveInt = 60,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        formula = parse(goal)
        unknown = [name for name in propositions(formula) if name not in THINGS]
        if unknown:
            raise UsageError(f"There is no {unknown[0]} in the home; there are {', '.join(THINGS)}.")
        self.automaton, self.walls = Automaton.of(formula), walls
        self.task = show(formula)
        rng = np.random.default_rng(home_seed)
        self.found: dict[tuple[int, int], str] = {}
        for (row, column), things in ROOMS.items():
            cells = rng.choice(9, len(things), replace=False).tolist()
            self.found |= {(row + c // 3, column + c % 3): t for c, t in zip(cells, things, strict=True)}
        self.at, self.left = (SIZE // 2, SIZE // 2), formula
        if not self._way():
            raise UsageError(f"The task {self.task!r} cannot be done in the home of seed {home_seed}.")

    def oracle(self) -> tuple[str, ...]:
        """Return an action on a shortest path to the end of the task."""
        return tuple([*self._way(), *MOVES][:1])

    def _way(self) -> list[str]:
        """The actions of a shortest path; none if there is no path."""
        paths: dict[Any, list[str]] = {(self.at, self.left): []}
        waiting = [(self.at, self.left)]
        for at, left in waiting:
            for action in MOVES:
                cell = self._moved(at, action)
                following = self.automaton.after(left, self.found.get(cell, ""))
                if following == TRUE:
                    return [*paths[at, left], action]
                if (cell, following) not in paths and following != FALSE:
                    paths[cell, following] = [*paths[at, left], action]
                    waiting.append((cell, following))
        return []

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"HomeGrid has no reset option {next(iter(options))!r}.")
        self.at, self.left = (SIZE // 2, SIZE // 2), self.automaton.start
        return Outcome(self._text(), tuple(MOVES))

    def _move(self, action: str) -> Outcome:
        self.at = self._moved(self.at, action)
        thing = self.found.get(self.at, "")
        self.left = self.automaton.after(self.left, thing)
        done = self.left == TRUE
        over = done or self.left == FALSE
        return Outcome(self._text(), tuple(MOVES), float(done), over, done, event=thing)

    def _moved(self, cell: tuple[int, int], action: str) -> tuple[int, int]:
        """The next cell; the home ends at its edge, and walls are crossed at doors."""
        row, column = (min(max(at + by, 0), SIZE - 1) for at, by in zip(cell, MOVES[action], strict=True))
        through = row != cell[0] and column in DOORS
        crosses = _room(cell) != _room((row, column))
        return cell if self.walls and crosses and not through else (row, column)

    def _text(self) -> str:
        thing = self.found.get(self.at)
        here = f", at the {thing}" if thing else ""
        return f"You are in row {self.at[0]}, column {self.at[1]}{here}.\nStill to do: {show(self.left)}."

    def _raw(self) -> Any:
        return self.at

    def _grid(self) -> Sequence[str]:
        return [
            "".join("@" if (r, c) == self.at else self.found.get((r, c), ".")[0] for c in range(SIZE))
            for r in range(SIZE)
        ]


def _room(cell: tuple[int, int]) -> tuple[int, ...]:
    """The room of a cell; empty in the hall."""
    return () if SIZE // 2 in cell else (cell[0] // 4, cell[1] // 4)
