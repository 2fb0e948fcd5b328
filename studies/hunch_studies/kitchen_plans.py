"""What a plan in the kitchen achieves if every skill works, so that a bad plan is told from a bad skill."""

from __future__ import annotations

from dataclasses import replace

from hunch.envs.kitchen.skills import SKILLS, Subtask
from hunch.envs.kitchen.world import FLOOR, HAND, PLACES, THINGS, Scene


def ideally(scene: Scene, plan: list[str]) -> Scene:
    """Return the scene after a plan in which every possible skill works; others change nothing."""
    for name in plan:
        if name in SKILLS:
            scene = _ideal(scene, SKILLS[name])
    return scene


def _ideal(scene: Scene, skill: Subtask) -> Scene:
    aim, beside = skill.aim, scene.beside
    if skill.verb == "reach":
        place = aim if aim in PLACES else scene.place_of(aim)
        if place not in PLACES or (aim in THINGS and not scene.seen(aim)):
            return scene
        return next(there for c in FLOOR if (there := replace(scene, robot=c)).beside == place)
    if skill.verb == "open":
        return replace(scene, opened=tuple(sorted({*scene.opened, aim}))) if beside == aim else scene
    if beside is None or scene.closed(beside):
        return scene
    if skill.verb == "pick up":
        free = scene.held is None and scene.place_of(aim) == beside
        return scene.with_thing(aim, HAND) if free else scene
    return scene.with_thing(aim, beside) if scene.held == aim else scene
