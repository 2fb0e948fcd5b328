"""The optimal way to serve the dish, by value iteration over all reachable scenes."""

from __future__ import annotations

from functools import cache

from hunch_studies.worlds.overcooked.kitchen import DISCOUNT, Kitchen, Scene, play
from hunch_studies.worlds.overcooked.words import look

PRECISION = 1e-9


def plan(kitchen: Kitchen, scene: Scene) -> tuple[str, ...]:
    """Return the macro-actions, as labelled on the way, that give the highest discounted return."""
    values, labels = _values(kitchen), []
    while True:
        macro = max(range(len(look(kitchen, scene).labels)), key=lambda a: _value(kitchen, scene, a, values))
        labels.append(look(kitchen, scene).labels[macro])
        result = play(kitchen, scene, macro)
        scene = result.scene
        if result.delivered:
            return tuple(labels)


def _value(kitchen: Kitchen, scene: Scene, macro: int, values: dict[Scene, float]) -> float:
    result = play(kitchen, scene, macro)
    later = 0.0 if result.delivered else values[result.scene]
    return result.reward + DISCOUNT**result.steps * later


@cache
def _values(kitchen: Kitchen) -> dict[Scene, float]:
    scenes = _scenes(kitchen)
    values = dict.fromkeys(scenes, 0.0)
    change = 1.0
    while change > PRECISION:
        change = 0.0
        for scene in reversed(scenes):
            macros = range(len(look(kitchen, scene).labels))
            best = max(_value(kitchen, scene, macro, values) for macro in macros)
            change, values[scene] = max(change, abs(best - values[scene])), best
    return values


def _scenes(kitchen: Kitchen) -> list[Scene]:
    """Every scene in which a macro-action can be taken, in the order of their distance from the start."""
    found = {kitchen.start(): None}
    for scene in (queue := list(found)):
        for macro in range(len(look(kitchen, scene).labels)):
            result = play(kitchen, scene, macro)
            if not result.delivered and result.scene not in found:
                found[result.scene] = None
                queue.append(result.scene)
    return queue
