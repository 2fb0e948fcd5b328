"""Tug: fetch a barge and bring it to its dock."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

from hunch.envs.icpi.base import Domain, Step, whole
from hunch.envs.icpi.texts import Texts

DOCKS, BARGE, HOME = 5, 1, 3
_MOVES = {"aft": -1, "winch": 0, "fore": 1}


class Haul(NamedTuple):
    """Where the tug is, and whether it has the barge (1) or not (0)."""

    dock: int
    barge: int


class TugTexts(Texts):
    """The words of the tug."""

    actions: ClassVar[Mapping[str, str]] = {
        "aft": "tug = aft()\n",
        "winch": "reward = winch(tug)\n",
        "fore": "tug = fore()\n",
    }
    reset = "\ntug, reward = reset()\n"
    state_start = "assert tug == "
    max_rollout_steps = 8


class Tug(Domain[Haul]):
    """Fetch a barge at dock 1 and bring it to dock 3 of a row of five docks.

    ``aft`` and ``fore`` change the dock by one, within 0 to 4. ``winch`` takes the barge at dock 1. At dock 3
    with the barge it ends the episode with reward 1; anywhere else it changes nothing. Episodes start at any
    dock without the barge. A state is ``{"dock": ..., "barge": 0 or 1}``; the optimum is 0.8 to the power of
    the steps before the last. It is not a domain of the paper: no model of ours was trained with it in view.

    Args:
        hints: Add a clause that compares the state with the goal.
        max_steps: Step limit of an episode; it truncates.
        render_mode: ``"ansi"`` or ``"rgb_array"``: the tug is ``@``, with the barge ``&``; its home ``G``.
    """

    wording = TugTexts()
    task = "fetch the barge at dock 1 and bring it to dock 3"
    form = "{'dock': 0 to 4, 'barge': 0 or 1}"

    def _draw(self) -> Haul:
        return Haul(self._any(DOCKS), 0)

    def _read(self, given: Any) -> Haul | None:
        match given:
            case {"dock": dock, "barge": barge, **others} if not others:
                return Haul(dock, barge) if whole(0, DOCKS - 1, dock) and whole(0, 1, barge) else None
        return None

    def _advance(self, action: str) -> Step[Haul]:
        return _advance(self._state, action)

    def _text(self) -> str:
        return _text(self._state, self.hints)

    def _plain(self) -> dict[str, int]:
        return self._state._asdict()

    def _optimum(self) -> float:
        dock, barge = self._state
        fetch = 0 if barge else abs(dock - BARGE) + 1
        return float(self.wording.log_gamma ** (fetch + abs((dock if barge else BARGE) - HOME)))

    def _grid(self) -> list[str]:
        docks = ["."] * DOCKS
        docks[HOME] = "G"
        docks[self._state.dock] = "&" if self._state.barge else "@"
        return ["".join(docks)]


@cache
def _advance(state: Haul, action: str) -> Step[Haul]:
    dock, barge = state
    there = action == "winch" and state == (HOME, 1)
    taken = action == "winch" and dock == BARGE
    moved = min(max(dock + _MOVES[action], 0), DOCKS - 1)
    return Haul(moved, int(barge or taken)), float(there), there, there


@cache
def _text(state: Haul, hints: bool) -> str:
    hint = f" and tug {'==' if state == (HOME, 1) else '!='} D({HOME}, 1)" if hints else ""
    return f"assert tug == D({state.dock}, {state.barge}){hint}\n"
