"""Squall, a game of our own, which no model can have read of: chance, a secret, and news about it."""

from __future__ import annotations

from typing import NamedTuple

from hunch_studies.games.game import CHANCE, END

STRENGTHS = "123"
LONGEST = 3
"""Times that a captain may sail."""


class Sea(NamedTuple):
    """A state: the hulls that are drawn, the weather, and points and fate of each captain.

    A fate is ``s`` under way, ``a`` at anchor or ``x`` sunk; ``mover`` is the captain who moves or has just
    sailed, ``rolling`` whether the weather is to turn.
    """

    hulls: str = ""
    weather: int = 0
    points: tuple[int, int] = (0, 0)
    fates: str = "ss"
    mover: int = 0
    rolling: bool = False


class Squall:
    """Two captains of hidden strength sail for points while the weather worsens."""

    title = "Squall"
    text = (
        "Squall, a game of two captains, players 0 and 1. Chance draws a secret hull of strength 1, 2 "
        "or 3 for captain 0 and then one for captain 1 ('hull 1', 'hull 2' or 'hull 3', each as "
        "likely). The weather begins at 0. Captains under way move in turn, captain 0 first. 'sail' "
        "earns a point; then the weather rises by 1 with probability 2/3 ('rise') or holds with "
        "probability 1/3 ('hold'), and if it is now above the hull of the captain that sailed, that "
        "captain has sunk and has 0 points for good. 'anchor' ends a captain's journey with the "
        "points that it has; a captain with three points can only anchor. Once no captain is under "
        "way, the one with more points wins 1, and the other -1; with equal points both have 0. A "
        "captain sees (its hull, the weather, the points of captains 0 and 1, their fates): '' before "
        "the hull is drawn, numbers, and a text of a letter a captain: s under way, a at anchor, x "
        "sunk. Actions are in the order sail, anchor."
    )

    def initial_state(self) -> Sea:
        """Return the state before hulls are drawn."""
        return Sea()

    def current_player(self, state: Sea) -> int:
        """Chance draws hulls and turns the weather; captains under way move in turn."""
        if len(state.hulls) < 2 or state.rolling:
            return CHANCE
        return state.mover if "s" in state.fates else END

    def legal_actions(self, state: Sea) -> list[str]:
        """Return sailing and anchoring."""
        return ["sail", "anchor"] if state.points[state.mover] < LONGEST else ["anchor"]

    def chance_outcomes(self, state: Sea) -> list[tuple[str, float]]:
        """A hull, or the weather."""
        if state.rolling:
            return [("rise", 2 / 3), ("hold", 1 / 3)]
        return [(f"hull {strength}", 1 / len(STRENGTHS)) for strength in STRENGTHS]

    def apply_action(self, state: Sea, action: str) -> Sea:
        """Draw a hull, turn the weather, sail or anchor."""
        if action.startswith("hull"):
            return state._replace(hulls=state.hulls + action[-1])
        if action == "sail":
            return state._replace(points=_scored(state, state.points[state.mover] + 1), rolling=True)
        if action == "anchor":
            return _turned(state, "a", state.points)
        weather = state.weather + (action == "rise")
        state = state._replace(weather=weather, rolling=False)
        if weather <= int(state.hulls[state.mover]):
            return _turned(state, "s", state.points)
        return _turned(state, "x", _scored(state, 0))

    def observation(self, state: Sea, player: int) -> tuple[str, int, int, int, str]:
        """Return the player's hull and the public part."""
        return state.hulls[player : player + 1], state.weather, *state.points, state.fates

    def returns(self, state: Sea) -> tuple[float, float]:
        """Return 1 for the player with more points, -1 for the other."""
        one, other = state.points
        won = float((one > other) - (one < other))
        return won, -won


def _scored(state: Sea, points: int) -> tuple[int, int]:
    """The points of both, with others for the mover."""
    one, other = state.points
    return (points, other) if state.mover == 0 else (one, points)


def _turned(state: Sea, fate: str, points: tuple[int, int]) -> Sea:
    """The state with the mover's fate, and the other captain's turn if it is under way."""
    fates = "".join(fate if i == state.mover else own for i, own in enumerate(state.fates))
    other = 1 - state.mover
    return state._replace(points=points, fates=fates, mover=other if fates[other] == "s" else state.mover)
