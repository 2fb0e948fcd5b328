"""Describes a BabyAI level in the words of Carta et al. (2023), and builds their prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

ACTIONS = ("turn left", "turn right", "go forward", "pick up", "drop", "toggle")
Wording = Literal["paper", "synonyms", "lengths"]
WORDINGS: Mapping[Wording, tuple[str, ...]] = {
    "paper": ACTIONS,
    "synonyms": ("rotate left", "rotate right", "move ahead", "take", "release", "switch"),
    "lengths": (
        "turn left",
        "turn to the right",
        "go forward by one step",
        "pick up the thing in front",
        "drop",
        "toggle",
    ),
}
"""The actions in order: in the paper's words, in synonyms, and in one to six words."""
HEADINGS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Steps (x, y) of the four headings: right, down, left, up, each a right turn from the previous one."""
AHEAD, ASIDE = 6, 3
"""Number of cells that the agent sees ahead, and to each side; it sees nothing behind."""
_RAYS = {
    "forward": [(0, n) for n in range(1, AHEAD + 1)],
    "left": [(-n, 0) for n in range(1, ASIDE + 1)],
    "right": [(n, 0) for n in range(1, ASIDE + 1)],
}
_View = dict[tuple[int, int], Any]
"""Content of each cell in view, by steps to the right and steps forward."""


def describe(level: Any) -> tuple[str, ...]:
    """Describe what is carried, then the walls straight ahead, left and right, then the things in view.

    Things are ordered by columns of the view from left to right and, within a column, from far to near. There
    is only one room without inner walls, and things do not block the view, so everything in range is seen.

    Args:
        level: A level of the ``minigrid`` package with one room.
    """
    view = _view(level)
    carried = [f"You carry a {level.carrying.color} {level.carrying.type}"] if level.carrying else []
    return (*carried, *_walls(view), *_things(view))


def prompt(
    mission: str,
    observations: Sequence[Sequence[str]],
    actions: Sequence[str],
    possible: Sequence[str] = ACTIONS,
) -> str:
    """Return the prompt of Carta et al. (2023): the actions, the goal, and recent observations.

    Args:
        mission: The goal.
        observations: Lists of descriptions, the last one current. The paper keeps three.
        actions: The actions taken between them, one fewer.
        possible: All actions.
    """
    parts = [
        f"Possible action of the agent: {', '.join(possible)}",
        f" \n Goal of the agent: {mission}",
    ]
    for i, (descriptions, action) in enumerate(zip(observations, (*actions, ""), strict=True)):
        listed = "".join(f"{description}, " for description in descriptions)
        parts.append(f" \n Observation {i}: {listed}\n Action {i}: {action}")
    return "".join(parts)


def _view(level: Any) -> _View:
    (x, y), (dx, dy) = map(int, level.agent_pos), HEADINGS[level.agent_dir]
    width, height, cells = level.grid.width, level.grid.height, level.grid.grid
    view = {}
    for right in range(-ASIDE, ASIDE + 1):
        for ahead in range(AHEAD, -1, -1):
            column, row = x + ahead * dx - right * dy, y + ahead * dy + right * dx
            if 0 <= column < width and 0 <= row < height and cells[row * width + column] is not None:
                view[right, ahead] = cells[row * width + column]
    return view


def _walls(view: _View) -> Iterator[str]:
    for way, ray in _RAYS.items():
        seen = [(n, view[cell]) for n, cell in enumerate(ray, 1) if cell in view]
        if seen and seen[0][1].type == "wall":
            yield f"You see a wall {_steps(seen[0][0], way)}"


def _things(view: _View) -> Iterator[str]:
    for (right, ahead), thing in view.items():
        if thing.type != "wall":
            ways = [_steps(abs(right), "right" if right > 0 else "left")] if right else []
            ways += [_steps(ahead, "forward")] if ahead else []
            yield f"You see a {thing.color} {thing.type} {' and '.join(ways)}"


def _steps(number: int, way: str) -> str:
    return f"{number} step{'s' if number > 1 else ''} {way}"
