"""The rules of Overcooked with one cook: what a macro-action does, step by step.

An item's cell says where it is in every sense. Counters and stations are the border of the room, the cook
stands on its floor; so an item on the cook's own cell is in hand, and a food on the bowl's cell is in the
bowl. To pick up, put down, fill or carry is to bring all that lies on one cell to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias

Cell: TypeAlias = tuple[int, int]
"""Row from the top and column from the left, both 0 to 6."""

BOWL = "bowl"
START: Cell = (1, 4)
DELIVERY: Cell = (3, 0)
CHOPS = 3
SIGHT = 2

DISCOUNT = 0.99
STEP_REWARD, CHOP_REWARD, DISH_REWARD, WRONG_DISH_REWARD = -0.001, 0.2, 1.0, -0.1


@dataclass(frozen=True, eq=False)
class Kitchen:
    """A kitchen and the dish that is wanted; compared by identity, because it keys the memory of its scenes.

    Attributes:
        homes: Where each item belongs: the foods in the order of the actions, then the bowl.
        boards: The cutting boards, by what texts call them.
        recipe: The foods of the dish.
        recipe_index: The dish among the seven of the observation vector.
        opening: The first sentence of every text.
        take_bowl: The label of getting the bowl while no filled one is in sight.
    """

    homes: Mapping[str, Cell]
    boards: Mapping[str, Cell]
    recipe: tuple[str, ...]
    recipe_index: int
    opening: str
    take_bowl: str

    @property
    def foods(self) -> tuple[str, ...]:
        """The items that can be chopped."""
        return tuple(self.homes)[:-1]

    def start(self) -> Scene:
        """Return the scene with which every episode begins."""
        return Scene(START, tuple(self.homes.values()), (0,) * len(self.foods))


TOMATO = Kitchen(
    homes={"tomato": (0, 5), BOWL: (6, 5)},
    boards={"the cutting board": (1, 0)},
    recipe=("tomato",),
    recipe_index=0,
    opening="There is a fixed cutting board in the room.",
    take_bowl="take the bowl",
)

SALAD = Kitchen(
    homes={"tomato": (0, 5), "lettuce": (1, 6), "onion": (2, 6), BOWL: (6, 5)},
    boards={"the first cutting board": (1, 0), "the second cutting board": (2, 0)},
    recipe=("tomato", "lettuce"),
    recipe_index=3,
    opening="There are two fixed cutting boards in the room.",
    take_bowl="take the empty bowl",
)


class Scene(NamedTuple):
    """The state of a kitchen.

    Attributes:
        agent: The cook's cell.
        cells: The cell of each item, in the order of ``Kitchen.homes``.
        chops: Number of chops of each food, 0 to 3.
    """

    agent: Cell
    cells: tuple[Cell, ...]
    chops: tuple[int, ...]


class Result(NamedTuple):
    """The result of a macro-action.

    Attributes:
        scene: The next scene.
        reward: The primitive rewards, discounted from the first step of this macro-action.
        steps: Number of primitive steps.
        delivered: True if the wanted dish was served.
    """

    scene: Scene
    reward: float
    steps: int
    delivered: bool


@cache  # the scenes are few: 25 and 1161
def play(kitchen: Kitchen, scene: Scene, macro: int) -> Result:
    """Play a macro-action, given as its index: a food, ..., the bowl, a board, ..., deliver, chop."""
    cook = _Cook(kitchen, scene)
    targets = [*kitchen.homes, *kitchen.boards, "deliver", "chop"]
    cook.do(targets[macro])
    return Result(cook.scene(), cook.reward, cook.steps, cook.delivered)


def near(cell: Cell, agent: Cell) -> bool:
    """Return whether a cell is in sight."""
    return abs(cell[0] - agent[0]) <= SIGHT and abs(cell[1] - agent[1]) <= SIGHT


def access(cell: Cell) -> Cell:
    """Return the floor cell next to a cell of the border."""
    return min(max(cell[0], 1), 5), min(max(cell[1], 1), 5)


class _Cook:
    """One macro-action at work."""

    def __init__(self, kitchen: Kitchen, scene: Scene) -> None:
        self.kitchen = kitchen
        self.boards = tuple(kitchen.boards.values())
        self.agent = scene.agent
        self.cells = dict(zip(kitchen.homes, scene.cells, strict=True))
        self.chops = dict(zip(kitchen.foods, scene.chops, strict=True))
        self.reward = 0.0
        self.steps = 0
        self.delivered = False

    def scene(self) -> Scene:
        return Scene(self.agent, tuple(self.cells.values()), tuple(self.chops.values()))

    # Macro-actions

    def do(self, target: str) -> None:
        if target == BOWL:
            self.get_bowl()
        elif target in self.chops:
            self.get_food(target)
        elif target in self.kitchen.boards:
            self.go_to_board(self.kitchen.boards[target])
        elif target == "deliver":
            self.deliver()
        else:
            self.chop()
        if self.steps == 0:
            self.tick()  # a pointless macro-action waits for one step

    def get_food(self, food: str) -> None:
        cell = self.cells[food]
        if cell == self.cells[BOWL]:
            # A food in the bowl cannot be had; the cook comes to see this as soon as the bowl is in sight.
            while not near(cell, self.agent):
                self.step_towards(cell)
            self.tick()
        elif cell != self.agent:
            self.walk(cell)
            if cell not in self.boards or self.is_chopped(food):
                self.interact(cell)

    def get_bowl(self) -> None:
        hand, cell = self.thing(self.agent), self.cells[BOWL]
        if hand == BOWL:
            return
        self.walk(cell)
        self.interact(cell)
        if self.is_chopped(hand):
            # Two steps in any case: a bowl on a board is in hand by now, one at home is to be picked up.
            if self.thing(self.agent) == BOWL:
                self.tick()
            else:
                self.interact(cell)

    def go_to_board(self, board: Cell) -> None:
        self.walk(board)
        if self.thing(self.agent):
            self.interact(board)

    def deliver(self) -> None:
        self.walk(DELIVERY)
        if self.thing(self.agent):
            self.interact(DELIVERY)

    def chop(self) -> None:
        for board in self.boards:
            food = self.thing(board)
            if self.agent == access(board) and food in self.chops and not self.is_chopped(food):
                for _ in range(CHOPS):  # in vain if something is in hand
                    self.interact(board)

    # Primitive steps

    def tick(self) -> None:
        self.steps += 1
        self.earn(STEP_REWARD)

    def step_towards(self, cell: Cell) -> None:
        (x, y), (to_x, to_y) = self.agent, access(cell)
        there = (x + (1 if to_x > x else -1), y) if x != to_x else (x, y + (1 if to_y > y else -1))
        self.bring(self.agent, there)
        self.agent = there
        self.tick()

    def walk(self, cell: Cell) -> None:
        while self.agent != access(cell):
            self.step_towards(cell)

    def interact(self, cell: Cell) -> None:
        self.tick()
        hand, there = self.thing(self.agent), self.thing(cell)
        if cell == DELIVERY:
            self.serve()
        elif hand is None:
            self.take_or_cut(cell)
        elif there is None:
            self.bring(self.agent, cell)
        elif hand == BOWL and self.is_chopped(there):
            self.bring(cell, self.agent)
        elif there == BOWL and self.is_chopped(hand):
            self.bring(self.agent, cell)
            if cell in self.boards:  # the filled bowl is taken at once, unlike at home
                self.bring(cell, self.agent)

    # Effects

    def earn(self, reward: float) -> None:
        self.reward += DISCOUNT ** (self.steps - 1) * reward

    def take_or_cut(self, cell: Cell) -> None:
        thing = self.thing(cell)
        if cell in self.boards and thing in self.chops and not self.is_chopped(thing):
            self.cut(thing)
        else:
            self.bring(cell, self.agent)

    def cut(self, food: str) -> None:
        self.chops[food] += 1
        if self.is_chopped(food) and food in self.kitchen.recipe:
            self.earn(CHOP_REWARD)

    def serve(self) -> None:
        served = self.at(self.agent)
        if set(served) == {*self.kitchen.recipe, BOWL}:
            self.bring(self.agent, DELIVERY)
            self.earn(DISH_REWARD)
            self.delivered = True
            return
        self.earn(WRONG_DISH_REWARD)
        for item in served:
            self.cells[item] = self.kitchen.homes[item]
            if item != BOWL:
                self.chops[item] = 0

    def bring(self, source: Cell, target: Cell) -> None:
        for item in self.at(source):
            self.cells[item] = target

    # Questions

    def at(self, cell: Cell) -> list[str]:
        return [item for item, place in self.cells.items() if place == cell]

    def thing(self, cell: Cell) -> str | None:
        """Return the item on a cell: the bowl if there is one, not its contents."""
        items = self.at(cell)
        return items[-1] if items else None

    def is_chopped(self, item: str | None) -> bool:
        return item in self.chops and self.chops[item] == CHOPS
