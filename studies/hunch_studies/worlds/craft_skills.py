"""The skill of finding things in the craft world, for planners, and the environment in which it is learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from hunch.core import State, UsageError
from hunch.envs.base import Outcome
from hunch.envs.craft import NAMES, PLACES, Craft, Scene
from hunch.ranges import NonNegativeInt, PositiveInt

WALKS: Final = tuple(f"go to {name}" for name in NAMES)
LONGEST: Final = 8
"""Maximum steps of a search (our choice); three are enough if the way is known."""


@dataclass(frozen=True)
class Finding:
    """The skill of finding a source.

    Attributes:
        aim: The source, as named in observations.
    """

    aim: str
    steps: int = LONGEST

    @property
    def name(self) -> str:
        """Name for the planner."""
        return f"find {self.aim}"

    @property
    def words(self) -> Mapping[str, str]:
        """Empty: the actions are the environment's own."""
        return {}

    def reached(self, before: Any, after: Any) -> bool:
        """Return whether the source is there."""
        scene: Scene = after
        return self.aim in scene.near

    def view(self, state: State) -> State:
        """Return the agent's place and the source; the way is learnt."""
        scene: Scene = state.raw
        text = f"You are in the {scene.at} and look for {self.aim}."
        return State(text, "find", WALKS, raw=scene, stream=state.stream)


FINDINGS: Final = tuple(Finding(source) for source in PLACES)


class CraftSkill(Craft):
    """Learn to find things in a craft world, one in each episode.

    The observation says where the agent is and what it looks for. Reaching that place has reward 1 and ends
    the episode. For planners, :attr:`subtasks` lists the skills of an agent trained here, in worlds with the
    same ``world_seed``.

    Args:
        world_seed: Seed of places and sources.
        max_steps: Step limit of an episode. Default: the limit that planners use.
        render_mode: ``"ansi"``.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"]}  # type: ignore[misc]
    offers = ("raw",)

    def __init__(
        self,
        *,
        world_seed: NonNegativeInt = 0,
        max_steps: PositiveInt = LONGEST,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(world_seed=world_seed, max_steps=max_steps, render_mode=render_mode)
        self.task = "find"
        self.subtasks = FINDINGS
        self.subtask = FINDINGS[0]

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"CraftSkill has no reset option {next(iter(options))!r}.")
        self.subtask = FINDINGS[int(self.task_random.integers(len(FINDINGS)))]
        self._forget()
        others = [name for name in NAMES if name != self.where[self.subtask.aim]]
        self.at = others[int(self.np_random.integers(len(others)))]
        return self._seen()

    def _move(self, action: str) -> Outcome:
        if action.removeprefix("go to ") in self.neighbours(self.at):
            self.at = action.removeprefix("go to ")
        return self._seen()

    def _seen(self) -> Outcome:
        self._text()  # which takes note of the scene
        view = self.subtask.view(State("", raw=self.scene))
        found = self.subtask.reached(self.scene, self.scene)
        return Outcome(view.observation, view.actions, float(found), found, found)
