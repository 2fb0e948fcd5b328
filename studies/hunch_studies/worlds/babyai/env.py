"""The one-room BabyAI levels in words, as Gymnasium environments."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

from hunch.core import UsageError
from hunch.envs.base import Outcome
from hunch.extras import library
from hunch.ranges import PositiveInt, check_value
from hunch_studies.worlds.babyai.facts import SCHEMA, at_dusk
from hunch_studies.worlds.babyai.oracle import plan
from hunch_studies.worlds.babyai.words import ACTIONS, WORDINGS, Wording, describe, prompt
from hunch_studies.worlds.grid import GridEnv

Reward = Literal["sparse", "babyai", "horizon"]
Skin = Literal["plain", "dusk"]
REMEMBERED = 3


class BabyAI(GridEnv):
    """A level of the ``minigrid`` package with one room, described as in BabyAI-Text (Carta et al., 2023).

    The six actions are always admissible. The observation has a line for each thing in view, and
    ``info["descriptions"]`` is the tuple of these lines. The mission is ``info["task"]``; success ends the
    episode, and so does the level's own step limit (``truncated``). The same seed gives the same layout and
    mission as the level of ``minigrid`` does.

    Args:
        reward: Reward of success: 1 (``"sparse"``); the level's own 1 - 0.9 steps / limit, with the level's
            step limit (``"babyai"``); or the same with ``max_steps`` as the limit (``"horizon"``).
        prompt: Use the prompt of Carta et al. as the observation, with the last three lists of descriptions
            and the two actions between them, and recommend no further history to ``hunch.make``.
        wording: Words of the actions: the paper's, ``"synonyms"``, or ``"lengths"`` (one to six words each).
        max_steps: Step limit of an episode (priors paper: 30).
        skin: How it is drawn: as ``minigrid`` does, or at ``"dusk"``, with other colours and noise.
        tile: Pixels of a cell's side in a picture.
        render_mode: ``"ansi"``, or ``"rgb_array"`` as drawn by ``minigrid``.

    Raises:
        UsageError: if there is no such ``reward``, ``wording`` or ``skin``, a cell has no pixel, or
            ``minigrid`` is not installed.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "rgb_array"],
        "history": REMEMBERED - 1,
    }
    offers = ("events",)
    level_class: ClassVar[str]

    def __init__(
        self,
        *,
        reward: Reward = "sparse",
        prompt: bool = False,
        wording: Wording = "paper",
        max_steps: int = 30,
        skin: Skin = "plain",
        tile: int = 32,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        if skin not in get_args(Skin):
            raise UsageError(f"skin must be {' or '.join(get_args(Skin))}, not {skin!r}.")
        check_value("tile", tile, PositiveInt)
        self.skin, self.tile = skin, tile
        if reward not in get_args(Reward):
            raise UsageError(f"reward must be {' or '.join(get_args(Reward))}, not {reward!r}.")
        if wording not in WORDINGS:
            raise UsageError(f"wording must be {' or '.join(WORDINGS)}, not {wording!r}.")
        self.reward = reward
        self.labels = WORDINGS[wording]
        self.prompt = prompt
        if prompt:
            self.metadata = {**self.metadata, "history": 0}  # type: ignore[misc]
        self._level = _make(self.level_class)
        self._seen: tuple[tuple[str, ...], ...] = ()
        self._taken: tuple[str, ...] = ()

    @property
    def level(self) -> Any:
        """The level of ``minigrid`` in play."""
        return self._level

    def oracle(self) -> tuple[str, ...] | None:
        """Return a shortest solution that moves nothing else; None if there is none.

        Raises:
            UsageError: outside an episode.
        """
        if not self._running:
            raise UsageError("No episode is running: call reset before oracle.")
        way = plan(self._level)
        return None if way is None else tuple(self.labels[ACTIONS.index(action)] for action in way)

    def render(self) -> Any:
        """Return the map above the observation, or its image in the skin."""
        drawn = super().render()
        return at_dusk(drawn) if self.skin == "dusk" and self.render_mode == "rgb_array" else drawn

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"BabyAI has no reset option {next(iter(options))!r}.")
        self._level.np_random = self.task_random
        with contextlib.redirect_stdout(None):  # it prints each layout that it rejects
            self._level.reset()
        self.task = self._level.mission
        self._seen, self._taken = (describe(self._level),), ()
        return Outcome(self._text(), self.labels)

    def _move(self, action: str) -> Outcome:
        _, reward, success, truncated, _ = self._level.step(self.labels.index(action))
        self._seen = (*self._seen, describe(self._level))[-REMEMBERED:]
        self._taken = (*self._taken, action)[1 - REMEMBERED :]
        return Outcome(
            self._text(),
            self.labels,
            self._paid(reward) if success else 0.0,
            terminated=success,
            success=success,
            truncated=truncated,
            event=f"The mission is accomplished: {self.task}." if success else "",
        )

    def _paid(self, reward: float) -> float:
        if self.reward == "sparse":
            return 1.0
        return reward if self.reward == "babyai" else 1 - 0.9 * self._level.step_count / self.max_steps

    def _text(self) -> str:
        if not self.prompt:
            return "\n".join(self._seen[-1])
        return prompt(self.task, self._seen, self._taken, self.labels)

    def _extras(self) -> dict[str, Any]:
        return {"descriptions": self._seen[-1]}

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy what a step changes in place."""
        self._level = _copied(self._level)


class GoToRedBall(BabyAI):
    """Go to the red ball, or a red ball, among seven other things, in text."""

    level_class = "GoToRedBall"
    schema = SCHEMA


class GoToRedBallGrey(BabyAI):
    """Go to the red ball among seven grey things, in text."""

    level_class = "GoToRedBallGrey"
    schema = SCHEMA


class GoToRedBallNoDists(BabyAI):
    """Go to the red ball in an otherwise empty room, in text."""

    level_class = "GoToRedBallNoDists"
    schema = SCHEMA


class GoToRedBlueBall(BabyAI):
    """Go to the only red or blue ball among seven other things, in text."""

    level_class = "GoToRedBlueBall"


class GoToObj(BabyAI):
    """Go to the only thing in the room, in text."""

    level_class = "GoToObj"


class GoToLocal(BabyAI):
    """Go to a thing named by colour and kind, among eight, in text."""

    level_class = "GoToLocal"


class PickupLoc(BabyAI):
    """Pick up a thing that may be named by where it lies, among eight, in text."""

    level_class = "PickupLoc"


class PickupDist(BabyAI):
    """Pick up one of five things, named by colour, kind or both, in text."""

    level_class = "PickupDist"


class OneRoomS8(BabyAI):
    """Pick up the ball, the only thing in the room, in text."""

    level_class = "OneRoomS8"


class PutNextLocal(BabyAI):
    """Put one thing next to another, among eight, in text."""

    level_class = "PutNextLocal"


def _make(name: str) -> Any:
    with contextlib.redirect_stdout(None):  # pygame greets
        levels = library("minigrid.envs.babyai", "BabyAI needs minigrid", "minigrid")
    level = getattr(levels, name)()
    level.gen_obs = _nothing
    return level


def _nothing() -> None:
    """Replaces the image that ``minigrid`` encodes at every step, which takes most of the time."""


def _copied(level: Any) -> Any:
    """Copy what a step changes, and share the rest: ten times as fast as ``copy.deepcopy``."""
    new = copy.copy(level)
    cells = [cell for cell in (*level.grid.grid, level.carrying) if cell is not None]
    memo = {id(cell): cell if cell.type == "wall" else copy.copy(cell) for cell in cells}
    memo[id(level)] = new
    mission = getattr(level, "instrs", None)  # there is none before the first reset
    new.grid, new.carrying, new.instrs = copy.deepcopy((level.grid, level.carrying, mission), memo)
    return new
