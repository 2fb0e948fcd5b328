"""MiniGrid's DoorKey and KeyCorridor in words, with a caption for what happens."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome
from hunch.envs.offers import Offer
from hunch.extras import library
from hunch.ranges import NonNegativeInt, PositiveInt
from hunch_studies.worlds.grid import GridEnv

ACTIONS: Final = ("turn left", "turn right", "go forward", "pick up", "drop", "toggle")
_FACING: Final = ("right", "down", "left", "up")


class Keys(GridEnv):
    """A level of ``minigrid`` fully described: one line per thing except walls.

    The six actions are always admissible. Reward 1, and success, for the mission, otherwise 0.
    ``info["event"]`` is a caption of what happened, except for walking and turning. The same seed gives the
    same layout as the level of ``minigrid`` does.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"]}  # type: ignore[misc]
    offers: ClassVar[Sequence[Offer]] = ("events",)

    def __init__(
        self, level: str, settings: Mapping[str, Any], max_steps: int, render_mode: str | None
    ) -> None:
        super().__init__(max_steps, render_mode)
        self._take_up(level, settings)

    def _take_up(self, level: str, settings: Mapping[str, Any]) -> None:
        """Make a level."""
        with contextlib.redirect_stdout(None):  # pygame greets
            levels = library("minigrid.envs", f"{level} needs minigrid", "minigrid")
        self._level = getattr(levels, f"{level}Env")(max_steps=self.max_steps + 1, **settings)
        self._level.gen_obs = _nothing

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"{type(self).__name__} has no reset option {next(iter(options))!r}.")
        self._level.np_random = self._random()
        self._level.reset()
        self.task = self._level.mission
        return Outcome(self._text(), ACTIONS)

    def _random(self) -> np.random.Generator:
        """The generator of the layout."""
        return self.task_random

    def _move(self, action: str) -> Outcome:
        before, ahead = self._seen(), self._level.grid.get(*self._level.front_pos)
        locked = ahead is not None and ahead.type == "door" and ahead.is_locked
        _, reward, over, _, _ = self._level.step(ACTIONS.index(action))
        success = bool(over and reward > 0)
        event = self._caption(action, before, ahead, locked, success)
        return Outcome(self._text(), ACTIONS, float(success), bool(over), success, event=event)

    def _seen(self) -> tuple[Any, ...]:
        """Everything that an action may change, except doors."""
        level = self._level
        return tuple(map(int, level.agent_pos)), level.carrying

    def _caption(self, action: str, before: tuple[Any, ...], ahead: Any, locked: bool, success: bool) -> str:
        """What an action did, in words; empty if it is not worth telling."""
        (here, carried), name = self._seen(), _name(ahead)
        if success and action != "toggle":
            return "You reach the goal." if carried is before[1] else f"You pick up the {_name(carried)}."
        if carried is not before[1]:
            return f"You pick up the {name}." if carried else f"You put down the {_name(before[1])}."
        if action == "toggle" and name.endswith("door"):
            if locked:
                return f"The {name} is locked." if ahead.is_locked else f"You unlock the {name}."
            return f"You open the {name}." if ahead.is_open else f"You close the {name}."
        if action == "go forward" and here == before[0]:
            return f"You walk into the {name}."
        return f"You stand in the {name}." if action == "go forward" and name.endswith("door") else ""

    def _text(self) -> str:
        level = self._level
        (x, y), heading = map(int, level.agent_pos), _FACING[level.agent_dir]
        lines = [f"You are at column {x}, row {y}, facing {heading}."]
        if level.carrying is not None:
            lines.append(f"You carry the {_name(level.carrying)}.")
        for i, thing in enumerate(level.grid.grid):
            if thing is not None and thing.type != "wall":
                row, column = divmod(i, level.grid.width)
                lines.append(f"The {_name(thing)} is at column {column}, row {row}{_condition(thing)}.")
        return "\n".join(lines)

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy what a step changes in place."""
        walls = {id(cell): cell for cell in self._level.grid.grid if cell is not None and cell.type == "wall"}
        self._level = copy.deepcopy(self._level, walls)


class DoorKey(Keys):
    """Fetch the key, unlock the door and get to the goal.

    MiniGrid's DoorKey: a wall with a locked door stands between the agent and the goal in the corner, and the
    key lies on the agent's side. Its reward falls with time; here success is worth 1.

    Args:
        size: Width and height, walls included: 5, 6, 8 and 16 are MiniGrid's.
        layout_seed: Seed of one layout for all episodes. Default: a new one in every episode.
        max_steps: Step limit of an episode. Default: MiniGrid's, 10 size^2.
        render_mode: ``"ansi"`` or ``"rgb_array"``, which is the drawing of ``minigrid``.
    """

    def __init__(
        self,
        *,
        size: Literal[5, 6, 8, 16] = 5,
        layout_seed: NonNegativeInt | None = None,
        max_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.layout_seed = layout_seed
        super().__init__(
            "DoorKey", {"size": size}, 10 * size**2 if max_steps is None else max_steps, render_mode
        )

    def _random(self) -> np.random.Generator:
        return super()._random() if self.layout_seed is None else np.random.default_rng(self.layout_seed)


class KeyCorridor(Keys):
    """Find the key, unlock the door and pick up the ball behind it.

    MiniGrid's KeyCorridor: rooms on both sides of a corridor, one of them locked. The observation lists
    everything, wherever it is.

    Args:
        rooms: Number of rooms on each side.
        room_size: Width and height of a room, including walls.
        max_steps: Step limit of an episode. Default: MiniGrid's, 30 room_size^2.
        render_mode: ``"ansi"`` or ``"rgb_array"``, which is the drawing of ``minigrid``.
    """

    def __init__(
        self,
        *,
        rooms: PositiveInt = 1,
        room_size: Literal[3, 4, 5, 6] = 3,
        max_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            "KeyCorridor",
            {"num_rows": rooms, "room_size": room_size},
            30 * room_size**2 if max_steps is None else max_steps,
            render_mode,
        )


def _name(thing: Any) -> str:
    if thing is None:
        return ""
    return str(thing.type) if thing.type in ("goal", "wall") else f"{thing.color} {thing.type}"


def _condition(thing: Any) -> str:
    if thing.type != "door":
        return ""
    return ", locked" if thing.is_locked else ", open" if thing.is_open else ", closed"


def _nothing() -> None:
    """Replaces the image that ``minigrid`` encodes at every step, which takes most of the time."""
