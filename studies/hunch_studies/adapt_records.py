"""Recorded decompositions of a language model in TextCraft, and their execution.

The files are those of github.com/archiki/ADaPT, ``results/ADaPT_*textcraft*.json`` of a clone, possibly
compressed (``.json.gz``). An episode holds its crafting commands, so its world can be rebuilt. It also holds
the steps that the model tried, whether the model said that they succeeded, and how it decomposed those that
it said had failed.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hunch.core import UsageError
from hunch_studies.worlds.textcraft import Book, Held, Recipe, counted, craft


@dataclass(frozen=True)
class Node:
    """A step that was tried.

    Attributes:
        task: The step in the model's words.
        said: True if the model said that it succeeded.
        steps: The model's decomposition; empty if there is none.
        tried: The steps of the decomposition that were tried.
    """

    task: str
    said: bool = False
    steps: tuple[str, ...] = ()
    tried: tuple[Node, ...] = ()

    @property
    def parts(self) -> tuple[Node, ...]:
        """All steps, including those that were not tried."""
        return (*self.tried, *(Node(step) for step in self.steps[len(self.tried) :]))


@dataclass(frozen=True)
class Episode:
    """A recorded episode.

    Attributes:
        name: Name in the file.
        goal: The item to craft.
        book: The recipes that were shown.
        root: The first step that was tried.
        success: Success according to the file.
        trace: The last exchange of model and world.
    """

    name: str
    goal: str
    book: Book
    root: Node
    success: bool
    trace: str


def recorded(folder: str | Path) -> dict[str, list[Episode]]:
    """Read the recorded episodes, by model.

    Args:
        folder: The repository.

    Raises:
        UsageError: if there are none, or a file is damaged or has another format.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise UsageError(f"There is no folder {str(folder)!r}.")
    paths = sorted([*root.rglob("ADaPT_*textcraft*.json"), *root.rglob("ADaPT_*textcraft*.json.gz")])
    if not paths:
        raise UsageError(
            f"{str(folder)!r} holds no recorded episodes: files results/ADaPT_*textcraft*.json are looked "
            "for, in a clone of github.com/archiki/ADaPT."
        )
    return {path.name.partition("textcraft_")[2].partition(".json")[0]: _episodes(path) for path in paths}


def _episodes(path: Path) -> list[Episode]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            data = json.load(file)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise UsageError(f"{path} is damaged: {error}.") from None
    own = {name: entry for name, entry in data.items() if name != "overall"} if isinstance(data, dict) else {}
    if not own:
        raise UsageError(f"{path} has no episodes.")
    return [_episode(path, name, entry) for name, entry in own.items()]


def _episode(path: Path, name: str, entry: Any) -> Episode:
    try:
        goal = re.fullmatch(r"craft (.+?)\.?", entry["problem"].strip())
        book = Book.read(entry["commands"].partition("Crafting commands:")[2])
        root, end = _node(entry["plans"], 0, 1)
        if goal is None or end != len(entry["plans"]):
            raise ValueError("the goal, or the order of its steps, has another format")
        return Episode(name, goal[1], book, root, bool(entry["reward"]), str(entry["trace"]))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, SyntaxError) as error:
        raise UsageError(f"{path}: the episode {name} cannot be read: {error}.") from None


def _node(lines: Sequence[str], at: int, level: int) -> tuple[Node, int]:
    """Return the step on a line with everything below it, and the next line."""
    step = re.fullmatch(rf"(.*) at depth {level}, success: (True|False)", lines[at], re.DOTALL)
    if step is None:
        raise ValueError(f"line {at + 1} of its plans is not a step of level {level}")
    at += 1
    plan = (
        re.fullmatch(rf"(\[.*\]) at depth {level + 1} and logic AND", lines[at]) if at < len(lines) else None
    )
    steps: tuple[str, ...] = ()
    tried: list[Node] = []
    if plan:
        steps, at = tuple(ast.literal_eval(plan[1])), at + 1
        if not all(isinstance(step, str) for step in steps):
            raise ValueError("a plan holds more than steps")
        while (
            len(tried) < len(steps)
            and at < len(lines)
            and lines[at].startswith(f"{steps[len(tried)]} at depth")
        ):
            node, at = _node(lines, at, level + 1)
            tried.append(node)
    return Node(step[1].strip(), step[2] == "True", steps, tuple(tried)), at


# ---- carrying out -----------------------------------------------------------------------------------------

Counts: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Order:
    """A parsed step.

    Attributes:
        item: The required item.
        n: Required number.
        inputs: The stated inputs of the recipe, if any.
    """

    item: str
    n: int = 1
    inputs: Counts = ()


def understood(book: Book, step: str) -> Order | None:
    """Return the order in a step, in the names of the recipes; None if it is not an order."""
    if fetch := re.fullmatch(r"fetch (\d+) (.+?)\.?", step.strip()):
        return Order(named(book, fetch[2]), int(fetch[1]))
    if made := re.fullmatch(r"craft (?:(\d+) )?(.+?)(?: using (.+?))?\.?", step.strip()):
        try:
            inputs = counted(made[3]) if made[3] else ()
        except UsageError:
            return None
        return Order(named(book, made[2]), int(made[1] or 1), tuple((named(book, i), n) for i, n in inputs))
    return None


def named(book: Book, item: str) -> str:
    """Return the recipes' name of a thing, which may differ by a plural."""
    tries = (item, f"{item}s", item.removesuffix("s"), item.removesuffix("es"))
    return next((name for name in tries if name in book.known), item)


@dataclass(frozen=True)
class Hand:
    """Executes single steps without error.

    Attributes:
        book: The recipes.
        reach: Number of consecutive recipes that it works out by itself; 0 takes a step literally.
    """

    book: Book
    reach: int = 0

    def do(self, step: str, held: Held) -> Held | None:
        """Return the inventory after a step; None if the step is impossible."""
        order = understood(self.book, step)
        if order is None:
            return None
        if order.inputs:
            recipe = self.book.matching(order.item, order.inputs) or self._loosely(order)
            return self._make(recipe, held, self.reach - 1) if recipe else None
        return self._have(order.item, order.n, held, self.reach)

    def _loosely(self, order: Order) -> Recipe | None:
        """Return the recipe in which kinds of ingredients are named as such."""
        wanted = sorted(order.inputs)
        return next((r for r in self.book.by_output.get(order.item, ()) if sorted(r.inputs) == wanted), None)

    def _have(self, item: str, n: int, held: Held, reach: int) -> Held | None:
        if any(held.get(sort, 0) >= n for sort in self.book.sorts(item)):
            return held
        if self.book.is_findable(item):
            return {**held, item: n}
        for recipe in (
            (r for sort in self.book.sorts(item) for r in self.book.by_output.get(sort, ())) if reach else ()
        ):
            now: Held | None = held
            while now is not None and now.get(recipe.output, 0) < n:
                now = self._make(recipe, now, reach - 1)
            if now is not None:
                return now
        return None

    def _make(self, recipe: Recipe, held: Held, reach: int) -> Held | None:
        """Return the inventory after a recipe; its inputs are fetched first, unless the reach is below 0."""
        for _ in recipe.inputs:  # to get one input may use up another
            for item, n in recipe.inputs if reach >= 0 else ():
                now = self._have(item, n, held, reach)
                if now is None:
                    return None
                held = now
        inputs = [(self._sort(item, n, held), n) for item, n in recipe.inputs]
        return craft(self.book, held, recipe.output, inputs)

    def _sort(self, item: str, n: int, held: Held) -> str:
        """Return a sort of a kind of which enough is held."""
        return next((sort for sort in self.book.sorts(item) if held.get(sort, 0) >= n), item)


def again(episode: Episode, reach: int, levels: int) -> bool:
    """Return whether the recorded decompositions reach the goal if their steps are executed without error.

    Args:
        episode: The episode.
        reach: Number of consecutive recipes that the executor works out by itself.
        levels: Maximum number of nested decompositions of an impossible step, if they were recorded.
    """
    held = _carried(episode.root, Hand(episode.book, reach), {}, levels, episode.goal)
    return held is not None and held.get(episode.goal, 0) > 0


def _carried(node: Node, hand: Hand, held: Held, levels: int, goal: str) -> Held | None:
    if held.get(goal, 0):
        return held
    done = hand.do(node.task, held)
    if done is not None or not levels or not node.steps:
        return done
    for part in node.parts:
        now = _carried(part, hand, held, levels - 1, goal)
        if now is None:
            return None
        held = now
    return held


# ---- judging ----------------------------------------------------------------------------------------------


def flaw(book: Book, task: str, steps: Sequence[str]) -> str:
    """Return what is wrong with a decomposition, assuming that fetching succeeds; empty if nothing is."""
    held: Mapping[str, int] = {}
    for step in steps:
        order = understood(book, step)
        if order is None:
            return "a step is not understood"
        item = book.sorts(order.item)[0]
        if not order.inputs:
            held = {**held, item: held.get(item, 0) + order.n}
            continue
        now = Hand(book).do(step, held)
        if now is None:
            known = book.matching(order.item, order.inputs) or Hand(book)._loosely(order)
            return "too little is fetched" if known else "there is no such recipe"
        held = now
    wanted = understood(book, task)
    if wanted is None:
        return "the task is not understood"
    enough = any(held.get(sort, 0) >= wanted.n for sort in book.sorts(wanted.item))
    return "" if enough else "too little is made"


def agreement(episode: Episode) -> list[bool]:
    """Return whether our world gives the recorded answer, done or impossible, to each command of a trace.

    A trace has several steps, and the inventory before each is not recorded, so crafting is compared only
    after the first inventory of a step.
    """
    return [agreed for part in episode.trace.split("\n>\n") for agreed in _agreed(episode.book, part)]


def _agreed(book: Book, trace: str) -> list[bool]:
    held, same = None, list[bool]()
    for command, answer in re.findall(r"^>? ?(get .*|craft .*|inventory.*)\n(.*)$", trace, re.MULTILINE):
        if answer.startswith("Inventory:"):
            held = {item: int(n) for item, n in re.findall(r"\[(.+?)\] \((\d+)\)", answer)}
        elif got := re.match(r"get (\d+) (.*)", command):
            item, n = got[2], int(got[1])
            same.append(book.is_findable(item) == answer.startswith("Got"))
            if held is not None and answer.startswith("Got"):
                held = {**held, item: held.get(item, 0) + n}
        elif held is not None and (made := re.match(r"craft (?:\d+ )?(.+?) using (.+)", command)):
            held = _crafted(book, held, made[1], made[2], answer, same)
    return same


def _crafted(
    book: Book, held: dict[str, int], output: str, text: str, answer: str, same: list[bool]
) -> dict[str, int]:
    try:
        now = craft(book, held, output, counted(text))
    except UsageError:
        now = None
    same.append((now is not None) == answer.startswith("Crafted"))
    return held if now is None else dict(now)
