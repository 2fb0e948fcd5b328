"""The skills of the kitchen: their goals, their observations and their actions.

A skill is one of four verbs with an aim, such as "pick up" and the apple. All aims of a verb share one
policy: the learner sees where the aim is, but not what it is. So one run trains all skills of a verb.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hunch.core import State
from hunch.envs.kitchen.world import CONTAINERS, HAND, MOVES, OPEN, PLACES, RELEASE, THINGS, Scene

VERBS: Final[dict[str, int]] = {"reach": 14, "pick up": 3, "put down": 2, "open": 3}
"""Maximum number of steps of a skill, by verb."""
GRASP: Final = "grasp"
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "reach": tuple(MOVES),
    "pick up": (*MOVES, GRASP),
    "put down": (RELEASE,),
    "open": (*MOVES, OPEN),
}
"""The primitive actions of each verb. For "put down", only the value is learnt: whether it is possible."""


@dataclass(frozen=True)
class Subtask:
    """A skill of the kitchen: a verb with its aim.

    Attributes:
        verb: The verb, a key of :data:`VERBS`.
        aim: A thing or a place.
    """

    verb: str
    aim: str

    @property
    def name(self) -> str:
        """Name of the skill for the planner."""
        if self.verb == "reach":
            return f"{'find' if self.aim in THINGS else 'go to'} the {self.aim}"
        return f"{self.verb} the {self.aim}"

    @property
    def steps(self) -> int:
        """Maximum number of steps of the skill."""
        return VERBS[self.verb]

    def reached(self, before: Any, after: Any) -> bool:
        """Return whether a step between two scenes reaches the goal; both are equal if no step was made."""
        scene: Scene = after
        if self.aim not in THINGS:
            return self.aim in scene.opened if self.verb == "open" else scene.beside == self.aim
        place = scene.place_of(self.aim)
        if self.verb == "pick up":
            return place == HAND
        if self.verb == "put down":
            return before.held == self.aim and place == scene.beside
        return place == HAND or (place == scene.beside and scene.seen(self.aim))

    def view(self, state: State) -> State:
        """Return the skill's observation: the places of robot and aim, and what the hand holds."""
        scene: Scene = state.raw
        row, column = scene.robot
        held = {None: "nothing", self.aim: "it"}.get(scene.held, "something else")
        text = f"You stand at row {row}, column {column} and hold {held}. {self._aim(scene)}"
        return State(text, self.verb, WORDS[self.verb], raw=scene, stream=state.stream)

    def _aim(self, scene: Scene) -> str:
        if self.verb == "put down":
            place = scene.beside
        else:
            place = self.aim if self.aim in PLACES else scene.place_of(self.aim)
            if self.aim in THINGS and not scene.seen(self.aim):
                return "The aim is not in sight."
        if place not in PLACES:
            return "The aim is nowhere."
        row, column = PLACES[place]
        shut = " and is closed" if scene.closed(place) else ""
        return f"The aim is at row {row}, column {column}{shut}."

    @property
    def words(self) -> Mapping[str, str]:
        """The environment's action for each action of the view, if they differ."""
        return {GRASP: f"grasp the {self.aim}"}


def subtasks(verb: str) -> tuple[Subtask, ...]:
    """Return all skills of a verb."""
    aims = {"reach": (*THINGS, *PLACES), "open": CONTAINERS}.get(verb, THINGS)
    return tuple(Subtask(verb, aim) for aim in aims)


SKILLS: Final = {each.name: each for verb in VERBS for each in subtasks(verb)}
"""All skills by name."""
