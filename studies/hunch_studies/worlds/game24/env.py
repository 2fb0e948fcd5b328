"""The Game of 24 as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch_studies.worlds.game24.rules import TARGET, Numbers, numbers, operations, shown, solution, solvable

HIGHEST = 13
"""Largest number in drawn puzzles, as on playing cards."""
MOST_GAMES = 1_000
"""Maximum number of drawn puzzles, of the 1,362 that can be solved."""


class Game24(TextEnv):
    """Make 24 of four numbers by adding, subtracting, multiplying and dividing.

    The observation is the numbers left, from the smallest to the largest. The actions are all legal
    operations on two of them; the result takes their place, exactly, as a fraction where need be. Reward 1 if
    24 is the only number left; the episode ends when one number is left, whichever it is. ``info["puzzle"]``
    is the puzzle. ``reset(options={"puzzle": i})`` plays puzzle ``i`` of the pool, and
    ``{"puzzle": "4 4 6 8"}`` this one.

    Args:
        puzzles: The pool: puzzles such as ``"4 4 6 8"`` as a sequence, or in one text separated by
            semicolons. Default: random puzzles that can be solved.
        games: Number of puzzles to draw.
        pool_seed: Seed of the pool.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or none.

    Raises:
        UsageError: if an option is out of range or a puzzle is invalid.
    """

    offers = ("events", "raw")
    task = "use each of the numbers once, with + - * /, to make 24"

    def __init__(
        self,
        *,
        puzzles: str | Sequence[str] | None = None,
        games: int = 100,
        pool_seed: int = 0,
        max_steps: int = 10,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        if not 1 <= games <= MOST_GAMES:
            raise UsageError(f"games must be from 1 to {MOST_GAMES:,}, not {games:,}.")
        given = puzzles.split(";") if isinstance(puzzles, str) else puzzles
        self.pool = drawn(games, pool_seed) if given is None else tuple(numbers(one) for one in given)
        if not self.pool:
            raise UsageError("There is no puzzle in the pool.")
        self.left: Numbers = self.pool[0]
        self._puzzle = shown(self.left)

    def oracle(self) -> tuple[str, ...] | None:
        """Return the operations of a solution from here; None if there is none."""
        return solution(self.left)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if unknown := set(options) - {"puzzle"}:
            raise UsageError(f"There is no reset option {unknown.pop()!r}; there is: puzzle.")
        choice = options["puzzle"] if "puzzle" in options else int(self.task_random.integers(len(self.pool)))
        if not isinstance(choice, str) and choice not in range(len(self.pool)):
            raise UsageError(f"There is no puzzle {choice!r}: the pool holds 0 to {len(self.pool) - 1}.")
        self.left = numbers(choice) if isinstance(choice, str) else self.pool[choice]
        self._puzzle = shown(self.left)
        return self._outcome()

    def _move(self, action: str) -> Outcome:
        self.left = operations(self.left)[action]
        return self._outcome()._replace(event=action)

    def _raw(self) -> Numbers:
        return self.left

    def _place(self, raw: Any) -> Outcome:
        self.left = tuple(raw)
        return self._outcome()

    def _outcome(self) -> Outcome:
        over = len(self.left) == 1
        won = over and self.left[0] == TARGET
        text = f"Numbers left: {shown(self.left)}"
        return Outcome(text, tuple(operations(self.left)), float(won), terminated=over, success=won)

    def _extras(self) -> dict[str, Any]:
        return {"puzzle": self._puzzle}


@lru_cache(maxsize=16)
def drawn(games: int, seed: int) -> tuple[Numbers, ...]:
    """Return different puzzles of four numbers from 1 to 13 that can be solved."""
    rng = np.random.default_rng(seed)
    found: dict[Numbers, None] = {}
    while len(found) < games:
        puzzle = numbers(rng.integers(1, HIGHEST + 1, size=4).tolist())
        if solvable(puzzle):
            found[puzzle] = None
    return tuple(found)
