"""The kitchen as two environments: errands in everyday words, and the skills for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, get_args

from hunch.core import State, UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.kitchen import world
from hunch.envs.kitchen.errands import ERRANDS, EXAMPLES, Errand, paraphrases, possible, reached
from hunch.envs.kitchen.skills import VERBS, Subtask, subtasks
from hunch.envs.kitchen.world import ACTIONS, CONTAINERS, DONE, HAND, NOWHERE, PLACES, THINGS, Scene
from hunch.ranges import Share

CHANGE: Final = 10
"""Number of steps after which the person may ask for another errand."""
QUESTIONS: Final = {f"ask where the {thing} is": thing for thing in THINGS}
Family = Literal["all", "primitive", "words", "nouns", "long"]
Verb = Literal["reach", "pick up", "put down", "open"]


class _Room(TextEnv):
    """Base class of both environments, with a scene."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"]}  # type: ignore[misc]
    offers = ("events", "raw")
    scene: Scene

    def _raw(self) -> Scene:
        return self.scene

    def _grid(self) -> list[str]:
        return world.grid(self.scene)


class Kitchen(_Room):
    """Do errands in a kitchen, such as "I would like a salty snack."

    The actions are primitive: steps on a grid of six by six cells, tries of the hand, and ``done``, which
    ends the episode. Success means that the errand is done by then, with reward 1; all other rewards are 0.

    Args:
        family: Family of errands, of thirty in all: all, primitive, words, nouns or long.
        paraphrased: The same errands in ninety other wordings.
        disturbance: Probability that an attempt of the hand fails and knocks the thing away; in each step,
            somebody moves a thing with a twentieth of this probability.
        changes: Probability that the person asks for another errand after ten steps, which is shown in
            ``info["task"]`` and ``info["event"]``.
        asking: True if the person can be asked where things are; the answer is in ``info["event"]``.
        described: Say of each action what it would do, as far as it can be seen, in
            ``info["action_descriptions"]``, which decision models read.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or ``"rgb_array"``; the robot is ``@``.

    Raises:
        UsageError: if there is no such family, or a probability is out of range.
    """

    examples = EXAMPLES

    def __init__(
        self,
        *,
        family: Family = "all",
        paraphrased: bool = False,
        disturbance: Share = 0.0,
        changes: Share = 0.0,
        asking: bool = False,
        described: bool = False,
        max_steps: int = 150,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        if family not in get_args(Family):
            raise UsageError(f"family must be {', '.join(get_args(Family))}, not {family!r}.")
        every = paraphrases() if paraphrased else ERRANDS
        self.errands = tuple(e for e in every if family in ("all", e.family))
        for name, share in (("disturbance", disturbance), ("changes", changes)):
            if not 0 <= share <= 1:
                raise UsageError(f"{name} must be from 0 to 1, not {share!r}.")
        self.disturbance, self.changes = disturbance, changes
        self.actions = (*ACTIONS, *QUESTIONS) if asking else ACTIONS
        self.described = described
        self.errand: Errand = self.errands[0]
        self.change = -1

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Kitchen has no reset option {next(iter(options))!r}.")
        self.errand = self._draw()
        self.task, self.scene = self.errand.text, world.draw(self.np_random)
        while not possible(self.errand.goal, self.scene):
            self.scene = world.draw(self.np_random)
        self.change = CHANGE if self.np_random.random() < self.changes else -1
        return Outcome(world.described(self.scene), self.actions)

    def _draw(self) -> Errand:
        return self.errands[int(self.task_random.integers(len(self.errands)))]

    def _move(self, action: str) -> Outcome:
        if action == DONE:
            success = reached(self.errand.goal, self.scene)
            said = "The errand is done." if success else "The errand is not done."
            return Outcome(
                world.described(self.scene), self.actions, float(success), True, success, event=said
            )
        if action in QUESTIONS:
            event = _answer(self.scene, QUESTIONS[action])
        else:
            self.scene, event = world.step(self.scene, action, self.np_random, self.disturbance)
        return Outcome(world.described(self.scene), self.actions, event=self._said(event))

    def _said(self, event: str) -> str:
        """What happened, and what the person says: another errand, if it is due."""
        self.change -= 1
        if self.change != 0:
            return event
        others = [e for e in self.errands if e != self.errand and possible(e.goal, self.scene)]
        if not others:
            return event
        self.errand = others[int(self.np_random.integers(len(others)))]
        self.task = self.errand.text
        return f"{event}\nThe person says: No, rather this. {self.task}".strip()

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy all but the errands, which nothing changes."""
        memo[id(self.errands)] = self.errands
        super().unshare(memo)

    def _place(self, raw: Any) -> Outcome:
        if not (isinstance(raw, Scene) and world.exists(raw)):
            raise self._no_state("a scene of this kitchen, as info['raw'] has it", raw)
        self.scene = raw
        return Outcome(world.described(self.scene), self.actions)

    def _extras(self) -> dict[str, Any]:
        return {"action_descriptions": world.consequences(self.scene)} if self.described else {}


def _answer(scene: Scene, thing: str) -> str:
    """What the person says when asked where a thing is."""
    place = scene.place_of(thing)
    if place == NOWHERE:
        return f"The person says: there is no {thing}."
    return f"The person says: the {thing} is at the {place}."


class KitchenSkill(_Room):
    """Learn a skill of the kitchen: reach, pick up, put down or open something.

    The aim is drawn anew in every episode. The observation says where it is, but not what it is, so that the
    policy works for every aim. Reaching it has reward 1 and ends the episode. For planners, :attr:`subtasks`
    lists the skills of an agent trained here.

    Args:
        verb: reach, pick up, put down or open.
        max_steps: Step limit of an episode. Default: the limit that planners use.
        render_mode: ``"ansi"`` or ``"rgb_array"``.

    Raises:
        UsageError: if there is no such verb.
    """

    def __init__(
        self, *, verb: Verb = "reach", max_steps: int | None = None, render_mode: str | None = None
    ) -> None:
        if verb not in VERBS:
            raise UsageError(f"verb must be {', '.join(VERBS)}, not {verb!r}.")
        super().__init__(VERBS[verb] if max_steps is None else max_steps, render_mode)
        self.task = verb
        self.subtasks: tuple[Subtask, ...] = subtasks(verb)
        self.subtask = self.subtasks[0]

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"KitchenSkill has no reset option {next(iter(options))!r}.")
        self.subtask = self.subtasks[int(self.task_random.integers(len(self.subtasks)))]
        self.scene = self._scene()
        while self.subtask.reached(self.scene, self.scene):
            self.scene = self._scene()
        return self._seen()

    def _scene(self) -> Scene:
        """Things anywhere, containers open or not, something in hand or not, the robot often at a place."""
        rng = self.np_random
        places = (*PLACES, NOWHERE)
        where = [places[i] for i in rng.integers(len(places), size=len(THINGS))]
        if rng.random() < 0.5:
            held = self.subtask.aim in THINGS and rng.random() < _HELD.get(self.subtask.verb, 0.0)
            where[THINGS.index(self.subtask.aim) if held else rng.integers(len(THINGS))] = HAND
        opened = tuple(place for place in sorted(CONTAINERS) if rng.random() < 0.5)
        scene = Scene((0, 1), tuple(where), opened)
        place = self.subtask.aim if self.subtask.aim in PLACES else scene.place_of(self.subtask.aim)
        spots = (place,) if place in PLACES else tuple(PLACES)
        near = [c for c in world.FLOOR if Scene(c, scene.where).beside in spots]
        cells = near if rng.random() < 0.5 else world.FLOOR
        return Scene(cells[rng.integers(len(cells))], scene.where, opened)

    def _move(self, action: str) -> Outcome:
        real = self.subtask.words.get(action, action)
        before = self.scene
        self.scene, event = world.step(before, real, self.np_random)
        return self._seen(event, self.subtask.reached(before, self.scene))

    def _seen(self, event: str = "", success: bool = False) -> Outcome:
        view = self.subtask.view(State("", raw=self.scene))
        return Outcome(view.observation, view.actions, float(success), success, success, event=event)


_HELD = {"put down": 0.7, "reach": 0.1}
"""Probability that the hand holds the aim itself at first, by verb."""
