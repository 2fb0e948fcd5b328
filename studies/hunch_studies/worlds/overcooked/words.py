"""The cook's view of a kitchen as a vector, as a text, and as labels of the macro-actions.

All three depend only on what is in sight after a macro-action; there is no memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from hunch_studies.worlds.overcooked.kitchen import BOWL, CHOPS, DELIVERY, Cell, Kitchen, Scene, access, near

_RECIPES = 7
_HIDDEN = (0, 0)
_EMPTY_HAND = "don't have anything in hand"


class View(NamedTuple):
    """The cook's view of a scene.

    Attributes:
        text: The sentences without the closing one.
        labels: The macro-actions in words, in the order of their indices.
        vector: Raw coordinates and chop counts, with zeros for what is out of sight.
    """

    text: str
    labels: tuple[str, ...]
    vector: tuple[int, ...]


@cache
def look(kitchen: Kitchen, scene: Scene) -> View:
    """Return the cook's view of a scene."""
    sight = _Sight(kitchen, scene)
    return View(" ".join(sight.sentences()), tuple(sight.labels()), tuple(sight.vector()))


def dish(kitchen: Kitchen) -> str:
    """Return the dish to serve, in the words of the closing half sentence."""
    return f"the dish of a bowl only containing chopped {_listed(kitchen.recipe)}"


def floor_plan(kitchen: Kitchen, scene: Scene) -> list[str]:
    """Return the kitchen as rows of characters.

    ``@`` is the cook, ``#`` a counter, ``_`` a cutting board, ``*`` the delivery. An item is its first
    letter, a capital one when it is chopped, and hides what it lies on; the cook hides what is in hand.
    """
    marks = {DELIVERY: "*"} | dict.fromkeys(kitchen.boards.values(), "_")
    chopped = (*(count == CHOPS for count in scene.chops), False)
    for item, cell, done in zip(kitchen.homes, scene.cells, chopped, strict=True):
        marks[cell] = item[0].upper() if done else item[0]
    marks[scene.agent] = "@"
    return ["".join(marks.get((x, y), "#" if {x, y} & {0, 6} else ".") for y in range(7)) for x in range(7)]


class _Sight:
    def __init__(self, kitchen: Kitchen, scene: Scene) -> None:
        self.kitchen = kitchen
        self.agent = scene.agent
        self.items = {
            item: cell if near(cell, scene.agent) else _HIDDEN
            for item, cell in zip(kitchen.homes, scene.cells, strict=True)
        }
        self.chops = dict(zip(kitchen.foods, scene.chops, strict=True))
        self.hand = self.at(scene.agent)

    def at(self, cell: Cell) -> list[str]:
        """The visible items on a cell; more than one are foods and their bowl, which comes last."""
        return [item for item, place in self.items.items() if place == cell]

    # The vector

    def vector(self) -> Iterator[int]:
        for item, cell in self.items.items():
            yield from cell
            if item != BOWL:
                yield self.chops[item] if cell != _HIDDEN else 0
        for cell in (*self.kitchen.boards.values(), DELIVERY, self.agent):
            yield from cell if near(cell, self.agent) else _HIDDEN
        yield from (int(index == self.kitchen.recipe_index) for index in range(_RECIPES))

    # The text

    def sentences(self) -> Iterator[str]:
        yield self.kitchen.opening
        homes = self.kitchen.homes
        seen = [f"{_article(item)} {item}" for item, cell in self.items.items() if cell == homes[item]]
        if seen:
            yield f"You notice {_listed(seen)} on the {'table' if len(seen) == 1 else 'different tables'}."
        for board, cell in self.kitchen.boards.items():
            if items := self.at(cell):
                yield f"{self.board_contents(items).capitalize()} is on {board}."
        yield f"Currently you {self.standing()}."

    def board_contents(self, items: Sequence[str]) -> str:
        text = self.named(items)
        # The original has this article on a board and not in hand, and with a single board only.
        alone = len(self.kitchen.boards) == 1
        return text.replace("containing chopped", "containing a chopped") if alone else text

    def standing(self) -> str:
        """How the cook stands there, with the original's two phrases for something in hand."""
        front = [board for board, cell in self.kitchen.boards.items() if self.agent == access(cell)]
        if not self.hand:
            return f"are standing in front of {front[0]} without anything in hand" if front else _EMPTY_HAND
        what = f"carrying {self.named(self.hand)}"
        if front:
            return f"are standing in front of {front[0]}, {what} in hand"
        return f"are {what} in hand" if len(self.hand) == 1 else f"are {what}"

    def named(self, items: Sequence[str]) -> str:
        *foods, last = items
        if last != BOWL:
            return f"{'a chopped' if self.chops[last] == CHOPS else 'an unchopped'} {last}"
        return f"a bowl containing chopped {_listed(foods)}" if foods else "a bowl"

    # The labels

    def labels(self) -> Iterator[str]:
        bowl = BOWL in self.hand
        for food in self.kitchen.foods:
            yield f"put the {food} in the bowl" if bowl else f"pick up the {food}"
        filled = any(len(self.at(cell)) > 1 for cell in (self.agent, *self.kitchen.boards.values()))
        yield "take the bowl" if filled else self.kitchen.take_bowl
        for board in self.kitchen.boards:
            yield f"put the {self.hand[-1]} on {board}" if self.says_put() else f"walk to {board}"
        yield "serve the dish" if self.hand else "serve nothing"
        yield f"chop {self.food_in_front()}"

    def says_put(self) -> bool:
        """Return whether walking to a board is called putting; a chopped food in hand is put there unsaid."""
        return bool(self.hand) and (self.hand[-1] == BOWL or self.chops[self.hand[-1]] < CHOPS)

    def food_in_front(self) -> str:
        for cell in self.kitchen.boards.values():
            items = self.at(cell)
            if self.agent == access(cell) and len(items) == 1 and items[0] != BOWL:
                return f"the {items[0]}"
        return "nothing"


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


def _listed(words: Sequence[str]) -> str:
    """Join with commas, and with "and" before the last."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
