"""A bandit of several arms, of which the good ones differ between training and test (Laskin et al., 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import Ge

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.ranges import Share


class Bandit(TextEnv):
    """Pull the arm of a bandit that pays most often.

    One arm pays 1 with probability ``good``, every other with probability ``bad``. An episode is one bandit.

    Args:
        arms: Number of arms.
        length: Pulls per episode.
        rewarding: Which arms may be the good one: those of odd number, of even number, or any.
        good: Probability that the good arm pays (our choice).
        bad: Probability that another arm pays (our choice).
        render_mode: ``"ansi"``.
    """

    offers = ("events", "raw")
    task = "Pull the arm that pays most often."

    def __init__(
        self,
        *,
        arms: Annotated[int, Ge(2)] = 10,
        length: int = 100,
        rewarding: Literal["odd", "even", "any"] = "odd",
        good: Share = 0.8,
        bad: Share = 0.2,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(length, render_mode)
        if not bad < good:
            raise UsageError(
                f"The good arm must pay more often than the others, but {good} is not above {bad}."
            )
        numbers = range(1, arms + 1)
        self.candidates = [n for n in numbers if rewarding == "any" or n % 2 == (rewarding == "odd")]
        self.good, self.bad = good, bad
        self._actions = tuple(f"pull arm {n}" for n in numbers)
        self._best = self.candidates[0]

    def oracle(self) -> tuple[str, ...]:
        """Return the good arm for the rest of the episode."""
        return (self._actions[self._best - 1],) * (self.max_steps - self._steps)

    def best(self, raw: Any) -> str:
        """Return the good arm of a state of ``info["raw"]``, for references and labels only."""
        return self._actions[int(raw) - 1]

    def _raw(self) -> int:
        return self._best

    def _place(self, raw: Any) -> Outcome:
        """Continue with another bandit, because the good arm is hidden."""
        self._best = self.candidates[int(self.np_random.integers(len(self.candidates)))]
        return Outcome("Pull an arm.", self._actions)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Bandit has no reset option {next(iter(options))!r}.")
        self._best = self.candidates[int(self.task_random.integers(len(self.candidates)))]
        return Outcome("Pull an arm.", self._actions)

    def _move(self, action: str) -> Outcome:
        right = action == self._actions[self._best - 1]
        paid = self.np_random.random() < (self.good if right else self.bad)
        event = "It pays." if paid else "It pays nothing."
        over = self._steps + 1 >= self.max_steps  # the length is part of the task
        return Outcome("Pull an arm.", self._actions, float(paid), over, over and right, event=event)
