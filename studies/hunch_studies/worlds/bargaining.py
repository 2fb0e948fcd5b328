"""Bargaining with a partner over books, hats and basketballs: OpenSpiel's game, in words.

The game is "Deal or No Deal" (DeVault et al., 2015; Lewis et al., 2017), the hard case of Kwon et al. (ICLR
2023), here with offers only, without dialogue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.ranges import NonNegativeInt, PositiveInt
from hunch_studies.worlds.spiel import load_game

THINGS: Final = ("book", "hat", "basketball")
AGREE: Final = "agree"
TOTAL: Final = 10
"""Total value of all things for each side."""
Numbers = tuple[int, ...]
"""Number of things of each kind."""


class Bargaining(TextEnv):
    """Divide some things with a partner who values them differently.

    OpenSpiel's ``bargaining``: both sides see the things, and each sees its own values, which sum to 10. They
    take turns: each names the things that it wants to keep, or accepts the other's offer. Without an
    agreement both get nothing. The agent begins. The reward at the end is a tenth of its points. Success is
    an agreement in which both get at least half of their points. ``info["event"]`` gives the last offer and
    the answer to it.

    The partner accepts any offer that gives it ``demand`` points, and otherwise asks for the fewest things
    that are worth that much to it.

    Args:
        demand: Points out of 10 that the partner wants.
        turns: Number of offers by both sides together; then the bargaining ends without an agreement.
        max_steps: Step limit of an episode; half of the ``turns`` are the agent's.
        render_mode: ``"ansi"``.

    Raises:
        UsageError: if ``open_spiel`` is not installed.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"]}  # type: ignore[misc]
    offers = ("events",)
    task = "divide the things with your partner so that you have many points"

    def __init__(
        self,
        *,
        demand: NonNegativeInt = 5,
        turns: PositiveInt = 10,
        max_steps: PositiveInt = 20,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        self.demand = demand
        self._game = load_game("bargaining", {"max_turns": turns}, needed_by="Bargaining")
        self._state = self._game.new_initial_state()
        self._pool: Numbers = ()
        self._values: tuple[Numbers, Numbers] = ((), ())

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Bargaining has no reset option {next(iter(options))!r}.")
        self._state = self._game.new_initial_state()
        drawn = self._state.chance_outcomes()
        self._state.apply_action(drawn[int(self.task_random.integers(len(drawn)))][0])
        lines = str(self._state).splitlines()
        self._pool, *values = (_numbers(line) for line in lines[:3])
        self._values = values[0], values[1]
        return Outcome(self._text(""), tuple(self._choices()))

    def _choices(self) -> dict[str, int]:
        """The actions of the player to move, by name."""
        found = {}
        for action in self._state.legal_actions():
            words = str(self._state.action_to_string(action))
            found[_told(_numbers(words)) if words.startswith("Offer") else AGREE] = int(action)
        return found

    def _move(self, action: str) -> Outcome:
        self._state.apply_action(self._choices()[action])
        event = f"You {action}."
        if not self._state.is_terminal():
            answer = self._answer(action)
            self._state.apply_action(self._choices()[answer])
            does = f"offers to {answer.removeprefix('offer to ')}" if answer != AGREE else "agrees"
            event += f" Your partner {does}."
        over = self._state.is_terminal()
        won, other = self._state.returns() if over else (0.0, 0.0)
        fair = over and min(won, other) >= TOTAL / 2
        actions = () if over else tuple(self._choices())
        return Outcome(self._text(event), actions, won / TOTAL, over, fair, event=event)

    def _answer(self, offer: str) -> str:
        """The partner's move: agree, or ask for the fewest things that are worth enough."""
        left = [n - kept for n, kept in zip(self._pool, _numbers(offer), strict=True)]
        if AGREE in (choices := self._choices()) and self._worth(left, 1) >= self.demand:
            return AGREE
        offers = [name for name in choices if name != AGREE]
        enough = [name for name in offers if self._worth(_numbers(name), 1) >= self.demand]
        return min(enough or offers, key=lambda name: sum(_numbers(name)))

    def _worth(self, numbers: Any, player: int) -> int:
        return sum(n * value for n, value in zip(numbers, self._values[player], strict=True))

    def _text(self, event: str) -> str:
        values = ", ".join(f"a {thing} {n}" for thing, n in zip(THINGS, self._values[0], strict=True))
        lines = [
            f"There are {_listed(self._pool)}. To you, in points: {values}.",
            *([event] if event else []),
        ]
        return "\n".join(lines)

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy what a step changes in place."""
        self._state = self._state.clone()


def _numbers(text: str) -> Numbers:
    """The three numbers of a text."""
    return tuple(map(int, re.findall(r"\d+", text)[-len(THINGS) :]))


def _listed(numbers: Numbers) -> str:
    parts = [f"{n} {thing}{'' if n == 1 else 's'}" for n, thing in zip(numbers, THINGS, strict=True)]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _told(numbers: Numbers) -> str:
    return f"offer to keep {_listed(numbers)}"
