"""Chain: walk along a line to the goal, and act there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from hunch.envs.icpi.base import Domain, Step, whole
from hunch.envs.icpi.texts import Texts

LENGTH, GOAL = 8, 4
_MOVES = {"left": -1, "try_goal": 0, "right": 1}


class ChainTexts(Texts):
    """The texts for prompts about the chain."""

    actions: ClassVar[Mapping[str, str]] = {
        "left": "state = left()\n",
        "try_goal": "reward = try_goal(state)\n",
        "right": "state = right()\n",
    }
    max_rollout_steps = 6


class Chain(Domain[tuple[int, ...]]):
    """Walk on a chain of 8 places to place 4, and try the goal there.

    ``left`` and ``right`` change the place by one, within 0 to 7. ``try_goal`` ends the episode, with
    reward 1 on place 4 and 0 elsewhere. Episodes start on any place. A state is ``[place]``; the optimum is
    0.8 to the power of its distance from 4.

    Args:
        hints: Add a clause that compares the state with the goal.
        max_steps: Step limit of an episode; it truncates.
        render_mode: ``"ansi"`` or ``"rgb_array"``: the agent is ``@``, the goal ``G``.
    """

    wording = ChainTexts()
    task = "walk to place 4 and try the goal there"
    form = "[place], from 0 to 7"
    _numbers: ClassVar[int] = 1

    def _draw(self) -> tuple[int, ...]:
        return (self._any(LENGTH),)

    def _read(self, given: Any) -> tuple[int, ...] | None:
        match given:
            case [*numbers] if len(numbers) == self._numbers and whole(0, LENGTH - 1, *numbers):
                return tuple(numbers)
        return None

    def _advance(self, action: str) -> Step[tuple[int, ...]]:
        return _advance(self._state[0], action)

    def _text(self) -> str:
        return _text(self._state, self.hints)

    def _optimum(self) -> float:
        return float(self.wording.log_gamma ** abs(self._state[0] - GOAL))

    def _grid(self) -> list[str]:
        places = ["."] * LENGTH
        places[GOAL] = "G"
        places[self._state[0]] = "@"
        return ["".join(places)]


@cache
def _advance(place: int, action: str) -> Step[tuple[int, ...]]:
    tried, there = action == "try_goal", place == GOAL
    moved = min(max(place + _MOVES[action], 0), LENGTH - 1)
    return (moved,), float(tried and there), tried, tried and there


@cache
def _text(state: tuple[int, ...], hints: bool) -> str:
    place, *rest = state
    goal = [GOAL, *rest]
    hint = f" and state {'==' if place == GOAL else '!='} {goal}" if hints else ""
    return f"assert state == {[place, *rest]}{hint}\n"
