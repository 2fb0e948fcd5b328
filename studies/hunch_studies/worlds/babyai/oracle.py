"""Finds a shortest solution of a BabyAI level, with full view of the room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from hunch_studies.worlds.babyai.words import HEADINGS

Cell = tuple[int, int]


def plan(level: Any) -> tuple[str, ...] | None:
    """Return a shortest sequence of actions that fulfils the mission, by breadth-first search.

    It moves only what the mission asks to move, opens no box, and puts down an object if the hand must be
    free. The level itself is not changed.

    Args:
        level: A level of the ``minigrid`` package whose mission is to go to, pick up or put next to.

    Returns:
        The actions, or None if other things would have to be moved.
    """
    mission = _Mission(level.instrs)
    start = _scene(level)
    reached: dict[_Scene, tuple[_Scene, str] | None] = {start: None}
    frontier = [start]
    while frontier:
        scenes, frontier = frontier, []
        for scene in scenes:
            for action, following in _moves(scene, mission):
                if following not in reached:
                    reached[following] = (scene, action)
                    if mission.fulfilled(scene, action, following):
                        return _way(reached, following)
                    if not (action == "drop" and scene.held in mission.movable):
                        frontier.append(following)
    return None


class _Scene(NamedTuple):
    position: Cell
    heading: int
    held: Any
    things: frozenset[tuple[Cell, Any]]

    @property
    def ahead(self) -> Cell:
        (x, y), (dx, dy) = self.position, HEADINGS[self.heading]
        return x + dx, y + dy


class _Mission:
    """The mission: to face a target, to hold one, or to drop one next to another thing."""

    def __init__(self, instruction: Any) -> None:
        from minigrid.envs.babyai.core.verifier import GoToInstr, PutNextInstr

        self.puts = isinstance(instruction, PutNextInstr)
        self.targets = (instruction.desc_move if self.puts else instruction.desc).obj_set
        self.beside = instruction.desc_fixed.obj_set if self.puts else []
        goes = isinstance(instruction, GoToInstr)
        # "a grey object" is also every wall, as walls are grey.
        self.movable = [] if goes else [thing for thing in self.targets if thing.can_pickup()]

    def fulfilled(self, scene: _Scene, action: str, following: _Scene) -> bool:
        """Return whether an action that leads from one scene to the next ends the level."""
        if self.puts:
            x, y = scene.ahead
            beside = [cell for cell, thing in scene.things if thing in self.beside]
            return (
                action == "drop"
                and scene.held in self.targets
                and any(abs(x - i) + abs(y - j) == 1 for i, j in beside)
            )
        if self.movable:
            return following.held in self.movable
        return dict(following.things).get(following.ahead) in self.targets


def _scene(level: Any) -> _Scene:
    x, y = map(int, level.agent_pos)
    cells = enumerate(level.grid.grid)
    things = frozenset((divmod(i, level.width)[::-1], thing) for i, thing in cells if thing is not None)
    return _Scene((x, y), int(level.agent_dir), level.carrying, things)


def _moves(scene: _Scene, mission: _Mission) -> Iterator[tuple[str, _Scene]]:
    yield "turn left", scene._replace(heading=(scene.heading - 1) % 4)
    yield "turn right", scene._replace(heading=(scene.heading + 1) % 4)
    thing = dict(scene.things).get(scene.ahead)
    if thing is None:
        yield "go forward", scene._replace(position=scene.ahead)
        if scene.held and mission.movable:
            yield "drop", scene._replace(held=None, things=scene.things | {(scene.ahead, scene.held)})
    elif thing in mission.movable and scene.held is None:
        yield "pick up", scene._replace(held=thing, things=scene.things - {(scene.ahead, thing)})


def _way(reached: dict[_Scene, tuple[_Scene, str] | None], scene: _Scene) -> tuple[str, ...]:
    actions = []
    while step := reached[scene]:
        scene, action = step
        actions.append(action)
    return tuple(reversed(actions))
