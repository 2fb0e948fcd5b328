"""Crafter in words: an open world to survive in, with 22 achievements.

The world is the package ``crafter`` (Hafner, 2022). The words are those of BALROG's wrapper (Paglieri et al.,
2024) with its defaults: the nearest thing of each kind (of water, the nearest edge) except grass, sand and
paths; then the thing in front, the status and the inventory.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from hunch.core import IntArray, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.extras import library
from hunch.ranges import PositiveInt

ACTIONS: Final = (
    *("Noop", "Move West", "Move East", "Move North", "Move South", "Do", "Sleep"),
    *("Place Stone", "Place Table", "Place Furnace", "Place Plant"),
    *("Make Wood Pickaxe", "Make Stone Pickaxe", "Make Iron Pickaxe"),
    *("Make Wood Sword", "Make Stone Sword", "Make Iron Sword"),
)
"""In the order of Crafter's numbers."""
VITALS: Final = ("health", "food", "drink", "energy")
UNTOLD: Final = ("grass", "sand", "path")
VIEW: Final = (9, 9)
"""Crafter's window; its lowest two rows are the inventory, so that 9 x 7 cells are visible."""
MIDDLE: Final = (4, 3)
"""The player's place in the visible part."""


class Crafter(TextEnv):
    """Gather, build, fight and survive: as many different achievements as there are.

    All 17 actions are always admissible. The reward is Crafter's: 1 in a step with an achievement that is new
    in the episode, plus 0.1 per point of health gained, minus 0.1 per point lost. Success means all 22
    achievements; it ends the episode, and so does death. ``info["event"]`` names the achievement of the step,
    new or not, such as ``collect wood``; ``info["achievements"]`` lists those of the episode.

    Args:
        area: Width and height of the world (Crafter, BALROG: 64).
        max_steps: Step limit of an episode (Crafter: 10,000; BALROG: 2,000).
        render_mode: ``"ansi"``, or ``"rgb_array"``, which is Crafter's picture.

    Raises:
        UsageError: if ``crafter`` is not installed.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"]}  # type: ignore[misc]
    offers = ("events",)
    task = "survive, and unlock as many different achievements as you can"

    def __init__(
        self, *, area: PositiveInt = 32, max_steps: PositiveInt = 2_000, render_mode: str | None = None
    ) -> None:
        super().__init__(max_steps, render_mode)
        package = library("crafter", "Crafter needs the package crafter", "crafter")
        self._game = package.Env(area=(area, area), view=VIEW, length=0, seed=0)
        self._game._obs = _nothing
        world, sight = self._game._world, self._game._sem_view
        world.reset = partial(_reset, world)
        kinds = {number: kind.__name__.lower() for kind, number in sight._obj_ids.items()}
        self._names = {number: str(name) for name, number in sight._mat_ids.items()} | kinds

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Crafter has no reset option {next(iter(options))!r}.")
        self._game._seed, self._game._episode = int(self.task_random.integers(2**31 - 1)), 0
        self._game.reset()
        return Outcome(self._text(), ACTIONS)

    def _move(self, action: str) -> Outcome:
        before = dict(self._game._player.achievements)
        _, reward, dead, info = self._game.step(ACTIONS.index(action))
        now = info["achievements"]
        event = ", ".join(_plain(name) for name, count in now.items() if count > before[name])
        success = all(now.values())
        return Outcome(self._text(), ACTIONS, float(reward), bool(dead) or success, success, event=event)

    def _extras(self) -> dict[str, Any]:
        counts = self._game._player.achievements
        return {"achievements": tuple(_plain(name) for name, count in counts.items() if count)}

    def _text(self) -> str:
        player = self._game._player
        state = "You are sleeping, and will not be able take actions until energy is full.\n\n"
        state = state if player.sleeping else "You died.\n\n" if player.health <= 0 else ""
        seen = self._seen()
        told = {number: self._names[number] for number in range(1, len(self._names))}
        return f"{state}{described(seen, told, player.facing)}\n\n{carried(player.inventory)}"

    def _seen(self) -> IntArray:
        """The number of each visible cell's thing, shape (9, 7), columns first; 0 beyond the world's edge."""
        x, y = (int(place) for place in self._game._player.pos)
        padded = np.pad(self._game._sem_view().astype(int), VIEW[0])
        left, top = x - MIDDLE[0] + VIEW[0], y - MIDDLE[1] + VIEW[0]
        return padded[left : left + VIEW[0], top : top + VIEW[1] - 2]

    def render(self) -> Any:
        """Return the observation, or Crafter's picture, (height, width, 3) ``uint8``."""
        picture = self.render_mode == "rgb_array"
        return self._game.render(np.array((288, 288))) if picture else super().render()

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy what a step changes in place."""
        kept = self._game._textures
        self._game = copy.deepcopy(self._game, {id(kept): kept})


def described(seen: IntArray, names: Mapping[int, str], facing: tuple[int, int]) -> str:
    """Describe the things in view and the thing in front in BALROG's words.

    Of each kind only the nearest is described, as in BALROG.

    Args:
        seen: The number of the thing in each visible cell, shape (columns, rows); 0 for nothing at all.
        names: The name of each number.
        facing: Columns and rows from the player to the cell in front.
    """
    nearest: dict[str, tuple[int, str]] = {}
    for (column, row), number in np.ndenumerate(seen):
        name = names.get(int(number), "")
        if name in ("", "player", *UNTOLD) or (name == "water" and not _at_edge(seen, column, row)):
            continue
        steps, place = _place(column - MIDDLE[0], row - MIDDLE[1])
        if name not in nearest or steps < nearest[name][0]:
            nearest[name] = steps, place
    front = names.get(int(seen[MIDDLE[0] + facing[0], MIDDLE[1] + facing[1]]), "")
    lines = [f"- {name} {place}" for name, (_, place) in nearest.items()]
    things = "\n".join(["You see:", *lines]) if lines else "You see nothing away from you."
    return f"{things}\n\nYou face {'nothing' if front in ('', *UNTOLD) else front} at your front."


def _at_edge(seen: IntArray, column: int, row: int) -> bool:
    """Whether something else is next to a cell, in view."""
    beside = ((column - 1, row), (column + 1, row), (column, row - 1), (column, row + 1))
    width, height = seen.shape
    inside = [(c, r) for c, r in beside if 0 <= c < width and 0 <= r < height]
    return any(seen[cell] != seen[column, row] for cell in inside)


def _place(right: int, down: int) -> tuple[int, str]:
    """The first number of a place, and the place in words."""
    parts = [(abs(down), "north" if down < 0 else "south"), (abs(right), "west" if right < 0 else "east")]
    told = [f"{n} step{'s' if n > 1 else ''} {way}" for n, way in parts if n]
    return int(told[0].split()[0]), " and ".join(told)


def carried(inventory: Mapping[str, int]) -> str:
    """Describe status and inventory in BALROG's words."""
    status = "\n".join(["Your status:", *(f"- {name}: {inventory[name]}/9" for name in VITALS)])
    items = [f"- {name}: {n}" for name, n in inventory.items() if n and name not in VITALS]
    held = "\n".join(["Your inventory:", *items]) if items else "You have nothing in your inventory."
    return f"{status}\n\n{held}"


class _InOrder(dict[Any, None]):
    """A set that keeps the order of insertion; that of Crafter's own sets depends on memory addresses."""

    def add(self, thing: Any) -> None:
        """Add a thing."""
        self[thing] = None

    def remove(self, thing: Any) -> None:
        """Remove a thing."""
        del self[thing]


def _reset(world: Any, seed: int | None = None) -> None:
    """Crafter's own reset, after which the same seed gives the same world and the same episode."""
    type(world).reset(world, seed)
    world._chunks = defaultdict(_InOrder)


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _nothing() -> None:
    """Replaces the picture that Crafter draws at every step, which takes most of the time."""
