"""Say-Select: one player knows which balls are good and says a number, the other selects a ball.

Source: Hu and Sadigh, "Language Instructed Reinforcement Learning for Human-AI Coordination", ICML 2023,
section 5.1, and its released code. The rules are theirs, the texts are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, ClassVar, Final, Literal

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.ranges import PositiveInt

WORDS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
QUIT: Final = "quit"


class SaySelect(TextEnv):
    """Two players collect good balls: one says a number, the other selects a ball.

    The speaker (player 0) sees the good balls and what the listener selected last; the listener (player 1)
    hears the number and knows what it selected last. A good ball is worth 1 to both and is bad from then on;
    a bad one costs 1. The episode ends when the listener quits, or when each player has had one turn per
    ball. Success means that all good balls were collected and no bad one was selected. Every code that maps
    numbers to balls, with some sign for quitting, is equally good.

    Args:
        balls: Number of balls, at most 9.
        good: Maximum number of good balls; there is at least one.
        words: Number the listener's balls in words ("select three") instead of digits.
        deals: ``drawn`` at random, or ``in turn``: episode n has the n-th of all deals.
        max_steps: Step limit of an episode. Default: never reached.
        render_mode: ``"ansi"``.

    Raises:
        UsageError: if there are more than 9 balls, or more good ones than there are.
    """

    task = "collect the good balls together and no other: one of you says a number, the other selects a ball"
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "players": 2}  # type: ignore[misc]
    offers = ("events",)

    def __init__(
        self,
        *,
        balls: PositiveInt = 5,
        good: PositiveInt = 3,
        words: bool = False,
        deals: Literal["drawn", "in turn"] = "drawn",
        max_steps: PositiveInt = 20,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        if not good <= balls <= len(WORDS):
            raise UsageError(f"Say-Select has at most {len(WORDS)} balls, and at most as many good ones.")
        self.balls, self.most, self.deals = balls, good, deals
        self.names = WORDS[:balls] if words else tuple(map(str, range(1, balls + 1)))
        self.says = tuple(f"say {n}" for n in range(1, balls + 1))
        self.selects = (QUIT, *(f"select {name}" for name in self.names))
        self.all = all_deals(balls, good)
        self._deal(frozenset())

    def _deal(self, good: frozenset[int]) -> None:
        self.good, self.dealt, self.total, self.turns = good, len(good), 0, 0
        self.said: int | None = None
        self.selected: int | None = None

    @property
    def mover(self) -> int:
        """The player to move: 0 is the speaker, 1 the listener."""
        return self.turns % 2

    def oracle(self) -> tuple[str, ...]:
        """Return the literal move: the number of a good ball, or the ball that was named."""
        if self.mover == 0:
            number = min(self.good) if self.good else self.selected
            return (self.says[0 if number is None else number],)
        assert self.said is not None
        return (QUIT if self.said == self.selected else self.selects[1 + self.said],)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Say-Select has no reset option {next(iter(options))!r}.")
        if self.deals == "in turn":
            self._deal(self.all[self.episode % len(self.all)])
        else:
            n = int(self.task_random.integers(1, self.most + 1))
            self._deal(frozenset(self.task_random.choice(self.balls, n, replace=False).tolist()))
        return Outcome(self._text(), self.says)

    def _move(self, action: str) -> Outcome:
        reward, event = self._say(action) if self.mover == 0 else self._select(action)
        self.turns += 1
        self.total += reward
        over = action == QUIT or self.turns == 2 * self.balls
        actions = self.says if self.mover == 0 else self.selects
        won = over and self.total == self.dealt
        return Outcome(self._text(), actions, float(reward), over, won, event=event)

    def _say(self, action: str) -> tuple[int, str]:
        self.said = self.says.index(action)
        return 0, f"The speaker says {self.said + 1}."

    def _select(self, action: str) -> tuple[int, str]:
        """The value of the selected ball, which is bad from then on."""
        if action == QUIT:
            return 0, "The listener quits."
        self.selected = ball = self.selects.index(action) - 1
        worth = 1 if ball in self.good else -1
        self.good -= {ball}
        return worth, f"The listener selects {self.names[ball]}, a {'good' if worth > 0 else 'bad'} ball."

    def _text(self) -> str:
        """Everything that the mover knows; the last event in the last line."""
        before = [] if self.selected is None else [self.names[self.selected]]
        if self.mover == 0:
            good = ", ".join(self.names[i] for i in sorted(self.good)) or "none"
            return "\n".join([f"Good balls: {good}.", *(f"Your partner selected {n}." for n in before)])
        assert self.said is not None
        return "\n".join([*(f"You selected {n}." for n in before), f"Your partner says {self.said + 1}."])

    def _extras(self) -> dict[str, Any]:
        return {"player": self.mover}


def all_deals(balls: int, most: int) -> tuple[frozenset[int], ...]:
    """Return all sets of good balls that may be dealt, small ones first."""
    return tuple(frozenset(own) for n in range(1, most + 1) for own in combinations(range(balls), n))
