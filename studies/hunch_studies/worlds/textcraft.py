"""A crafting world with recipes in words: get raw items, craft the rest.

The rules are those of TextCraft (Prasad et al., "ADaPT: As-Needed Decomposition and Planning with Language
Models", NAACL Findings 2024), rebuilt from the list of commands that an episode shows; the default recipes
are our own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.ranges import PositiveInt

KINDS: Final = ("planks", "wool")
"""Kinds of ingredients, such as planks, of which any sort can be used; kinds themselves cannot be got."""
RECIPES: Final = """\
craft 4 oak planks using 1 oak log
craft 4 birch planks using 1 birch log
craft 4 stick using 2 planks
craft 1 bowl using 3 planks
craft 1 white wool using 4 string
craft 1 red dye using 1 poppy
craft 2 orange dye using 1 red dye, 1 yellow dye
craft 1 yellow dye using 1 dandelion
craft 1 orange wool using 1 orange dye, 1 white wool
craft 1 orange bed using 3 orange wool, 3 planks
craft 3 paper using 3 sugar cane
craft 1 book using 3 paper, 1 leather
craft 1 bookshelf using 6 planks, 3 book
craft 1 ladder using 7 stick
craft 1 painting using 8 stick, 1 wool
craft 1 orange banner using 6 orange wool, 1 stick"""
"""The default recipes."""

Held = Mapping[str, int]


@dataclass(frozen=True)
class Recipe:
    """A crafting recipe.

    Attributes:
        output: The crafted item.
        makes: Number of crafted items.
        inputs: Items that are used up, with their numbers.
    """

    output: str
    makes: int
    inputs: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        """The crafting command."""
        return f"craft {self.makes} {self.output} using {', '.join(f'{n} {item}' for item, n in self.inputs)}"


def counted(text: str) -> tuple[tuple[str, int], ...]:
    """Parse "2 stick, 1 planks".

    Raises:
        UsageError: if a part has no number.
    """
    parts = [re.fullmatch(r"(\d+) (.+)", part.strip()) for part in text.split(",")]
    if not all(parts):
        raise UsageError(f"{text!r} is not a list of numbers and items, such as '2 stick, 1 planks'.")
    return tuple((part[2], int(part[1])) for part in parts if part)


@dataclass(frozen=True)
class Book:
    """A list of recipes.

    Attributes:
        recipes: The recipes.
    """

    recipes: tuple[Recipe, ...]

    @classmethod
    def read(cls, text: str) -> Book:
        """Parse a list of commands, one per line.

        Raises:
            UsageError: if a line is not a command, or there is none.
        """
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        found = [re.fullmatch(r"craft (\d+) (.+?) using (.+)", line) for line in lines]
        wrong = next((line for line, match in zip(lines, found, strict=True) if match is None), None)
        if wrong is not None or not lines:
            raise UsageError(
                f"{wrong or text!r} is not a crafting command, such as 'craft 4 stick using 2 planks'."
            )
        return cls(tuple(Recipe(m[2], int(m[1]), counted(m[3])) for m in found if m))

    @cached_property
    def by_output(self) -> dict[str, list[Recipe]]:
        """The recipes of each item that can be crafted."""
        found: dict[str, list[Recipe]] = {}
        for recipe in self.recipes:
            found.setdefault(recipe.output, []).append(recipe)
        return found

    @cached_property
    def known(self) -> frozenset[str]:
        """All named items."""
        return frozenset([*self.by_output, *(item for recipe in self.recipes for item, _ in recipe.inputs)])

    def sorts(self, item: str) -> list[str]:
        """Return the items that can be used as an ingredient: itself, or all sorts of a kind."""
        if item not in KINDS or item in self.by_output:
            return [item]
        return [sort for sort in self.by_output if sort.endswith(f" {item}")] or [item]

    def is_findable(self, item: str) -> bool:
        """Return whether an item can be got: it is named, no recipe makes it, and it is not a kind."""
        return item in self.known and item not in self.by_output and self.sorts(item) == [item]

    def matching(self, output: str, inputs: Sequence[tuple[str, int]]) -> Recipe | None:
        """Return the recipe of an output with exactly these inputs; a kind may be any of its sorts."""
        for recipe in self.by_output.get(output, ()):
            left = list(inputs)
            for item, n in recipe.inputs:
                own = next((pair for pair in left if pair[1] == n and pair[0] in self.sorts(item)), None)
                if own is None:
                    break
                left.remove(own)
            else:
                if not left:
                    return recipe
        return None


def craft(book: Book, held: Held, output: str, inputs: Sequence[tuple[str, int]]) -> Held | None:
    """Return the inventory after crafting; None if there is no such recipe, or too little is held."""
    recipe = book.matching(output, inputs)
    if recipe is None or any(held.get(item, 0) < n for item, n in inputs):
        return None
    return +Counter({**held, output: held.get(output, 0) + recipe.makes}) - Counter(dict(inputs))


def depth(book: Book, item: str, seen: tuple[str, ...] = ()) -> int:
    """Return how many recipes deep an item is; 0 if it can be got."""
    depths = [
        1
        + max(min(depth(book, sort, (*seen, item)) for sort in book.sorts(part)) for part, _ in recipe.inputs)
        for recipe in book.by_output.get(item, ())
        if item not in seen
    ]
    return min(depths, default=0)


class TextCraft(TextEnv):
    """Craft an item by recipes, some of which are not needed.

    Any text is an action. ``get 2 string`` takes raw items, ``craft 4 stick using 2 oak planks`` uses up
    items of the inventory, ``inventory`` lists it; any other text has no effect, and the observation says so.
    Crafting the goal has reward 1 and ends the episode with success.

    Args:
        recipes: Crafting commands, one per line. Default: sixteen of our own.
        goal: The item to craft. Default: drawn anew in each episode, at least two recipes deep.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"``.

    Raises:
        UsageError: if the recipes cannot be read, or there is none for the goal.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"]}  # type: ignore[misc]
    offers = ("free_text", "events", "raw")

    def __init__(
        self,
        *,
        recipes: str = RECIPES,
        goal: str = "",
        max_steps: PositiveInt = 40,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        self.book = Book.read(recipes)
        self.goals = (goal,) if goal else tuple(self._deep())
        if not set(self.goals) <= set(self.book.by_output) or not self.goals:
            raise UsageError(f"There is no recipe for {goal or 'anything two recipes deep'}.")
        self.manual = "Crafting commands:\n" + "\n".join(map(str, self.book.recipes))
        self.goal, self.held = self.goals[0], dict[str, int]()

    def _deep(self) -> Iterator[str]:
        return (item for item in self.book.by_output if depth(self.book, item) > 1)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"TextCraft has no reset option {next(iter(options))!r}.")
        self.goal = self.goals[int(self.task_random.integers(len(self.goals)))]
        self.task, self.held = f"craft {self.goal}", {}
        return Outcome(f"{self.manual}\n\nGoal: {self.task}.", None)

    def _move(self, action: str) -> Outcome:
        if action.strip() == "inventory":
            held = ", ".join(f"{n} {item}" for item, n in self.held.items())
            return Outcome(f"You have {held or 'nothing'}.", None)
        if got := re.fullmatch(r"get (\d+) (.+)", action.strip()):
            return self._get(got[2], int(got[1]))
        if made := re.fullmatch(r"craft (?:\d+ )?(.+?) using (.+)", action.strip()):
            return self._craft(made[1], made[2])
        return Outcome(f"Could not do {action.strip()!r}.", None)

    def _get(self, item: str, n: int) -> Outcome:
        if not self.book.is_findable(item) or n < 1:
            return Outcome(f"Could not find {item}.", None)
        self.held = {**self.held, item: self.held.get(item, 0) + n}
        return Outcome(f"Got {n} {item}.", None, event=f"got {item}")

    def _craft(self, output: str, text: str) -> Outcome:
        try:
            inputs = counted(text)
        except UsageError as error:
            return Outcome(f"Could not craft {output}: {error}", None)
        held = craft(self.book, self.held, output, inputs)
        if held is None:
            known = self.book.matching(output, inputs) is not None
            why = "there is too little of what it takes" if known else "there is no such recipe"
            return Outcome(f"Could not craft {output}: {why}.", None)
        self.held, over = dict(held), output == self.goal
        return Outcome(f"Crafted {output}.", None, float(over), over, over, event=f"crafted {output}")

    def _raw(self) -> tuple[tuple[str, int], ...]:
        return tuple(self.held.items())

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy what a step changes in place."""
        self.held = dict(self.held)
