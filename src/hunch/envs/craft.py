"""A small, fast world of places, tools and recipes in words, with many pointless actions.

The rules are ours. They follow the order of Crafter (Hafner, 2022): wood, table, pickaxes of three kinds,
stone, coal, iron, diamond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
from annotated_types import Interval

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.envs.offers import Offer
from hunch.ranges import NonNegativeInt, PositiveInt, Share
from hunch.suggest import suggest

Difficulty = Literal["easy", "medium", "hard"]


@dataclass(frozen=True)
class Rule:
    """Requirements and effects of an action.

    Attributes:
        action: Name of the action, also the event when it succeeds.
        source: Source that the action uses, as named in observations; empty if none.
        tool: Tool that must be held.
        near: Stations that must be at the agent's place.
        uses: Items that are used up, with their numbers.
        gives: Item that the agent holds afterwards; empty if none.
        puts: Station that is at the agent's place afterwards; empty if none.
        need: Need that the action satisfies, which must be present; empty if none.
    """

    action: str
    source: str = ""
    tool: str = ""
    near: tuple[str, ...] = ()
    uses: tuple[tuple[str, int], ...] = ()
    gives: str = ""
    puts: str = ""
    need: str = ""

    @property
    def makes(self) -> bool:
        """True if the action makes something that is needed only once."""
        return self.action.startswith("make")


def _made(tool: str, *near: str, **uses: int) -> Rule:
    return Rule(f"make {tool}", near=near, uses=tuple(uses.items()), gives=tool)


RULES: Final = (
    Rule("drink water", "a pond", need="thirsty"),
    Rule("eat berries", "bushes", need="hungry"),
    Rule("collect wood", "trees", gives="wood"),
    Rule("collect sapling", "grass", gives="sapling"),
    Rule("plant sapling", uses=(("sapling", 1),), puts="a young tree"),
    Rule("make table", uses=(("wood", 2),), puts="a table"),
    _made("wooden pickaxe", "a table", wood=1),
    Rule("collect stone", "rocks", "wooden pickaxe", gives="stone"),
    _made("wooden sword", "a table", wood=1),
    _made("stone pickaxe", "a table", wood=1, stone=1),
    Rule("collect wool", "sheep", gives="wool"),
    Rule("make bed", near=("a table",), uses=(("wood", 1), ("wool", 1)), puts="a bed"),
    Rule("sleep", near=("a bed",), need="tired"),
    Rule("collect coal", "black seams", "wooden pickaxe", gives="coal"),
    _made("stone sword", "a table", wood=1, stone=1),
    Rule("make furnace", near=("a table",), uses=(("stone", 2),), puts="a furnace"),
    _made("torch", wood=1, coal=1),
    Rule("place torch", uses=(("torch", 1),), puts="a torch"),
    Rule("collect iron", "rusty seams", "stone pickaxe", gives="iron"),
    _made("iron pickaxe", "a table", "a furnace", wood=1, coal=1, iron=1),
    Rule("collect diamond", "sparkling seams", "iron pickaxe", gives="diamond"),
    _made("iron sword", "a table", "a furnace", wood=1, coal=1, iron=1),
)
"""All achievements; each comes after its prerequisites."""
LEVELS: Final[Mapping[Difficulty, int]] = {"easy": 10, "medium": 16, "hard": 22}
"""Number of achievements by difficulty."""
POINTLESS: Final = (
    Rule("collect flowers", "flowers", gives="flowers"),
    Rule("collect shells", "shells", gives="shells"),
    Rule("collect feathers", "feathers", gives="feathers"),
)
"""Actions that gather useless things, and are not achievements."""
PASTIMES: Final = (
    *("whistle a tune", "count the clouds", "kick a pebble", "wave at nobody", "draw in the dust"),
    *("spin round", "clap hands", "stretch out", "look at the sky", "hum quietly", "stamp the ground"),
    "skip about",
)
"""Actions that always succeed and have an event, but change nothing."""
HOPELESS: Final = (
    *("drink sand", "eat stone", "collect fog", "make cloud", "plant rock", "eat feathers", "make river"),
    *("collect shade", "drink berries", "make moon", "place wind", "eat wool", "plant coal", "make echo"),
    *("collect smoke", "place puddle", "eat wood", "make ladder of sand", "drink iron", "plant water"),
)
"""Actions that never have an effect."""
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "trees": ("forest", "valley"),
    "grass": ("meadow", "valley"),
    "bushes": ("meadow", "forest"),
    "sheep": ("meadow", "hills"),
    "flowers": ("meadow", "valley"),
    "feathers": ("forest", "hills"),
    "a pond": ("shore", "valley"),
    "shells": ("shore",),
    "rocks": ("hills", "cave"),
    "black seams": ("cave", "hills"),
    "rusty seams": ("cave",),
    "sparkling seams": ("cave",),
}
"""Possible places of each source; a world puts the source in one of them."""
NAMES: Final = ("meadow", "forest", "valley", "shore", "hills", "cave")
NEEDS: Final = ("thirsty", "hungry", "tired")
MOST: Final = 2
"""Default maximum number of items of each kind."""
ANY: Final = "any"
"""Value of ``target`` for a different target in every episode."""
DONE: Final = "done"
"""Action that gives up, if there is a target."""

Held = tuple[tuple[str, int], ...]


class Scene(NamedTuple):
    """The state for planners: the agent's place, items with their numbers, and what is at the place."""

    at: str
    held: Held
    near: tuple[str, ...]


def manual(rules: Sequence[Rule]) -> str:
    """Return the sources and the recipes in words, one per line."""
    in_world = dict.fromkeys(rule.source for rule in rules if rule.source)
    return "\n".join([f"There are {', '.join(in_world)} in the world.", *map(recipe, rules)])


def recipe(rule: Rule) -> str:
    """Return what an action needs and gives, in a sentence."""
    near = [name for name in (rule.source, *rule.near) if name]
    wants = [
        *([f"be near {' and '.join(near)}"] if near else []),
        *([f"hold 1 {rule.tool}"] if rule.tool else []),
        *([f"be {rule.need}"] if rule.need else []),
        *([f"use {' and '.join(f'{n} {thing}' for thing, n in rule.uses)}"] if rule.uses else []),
    ]
    comes = [f"you get 1 {rule.gives}"] if rule.gives else []
    comes += [f"{rule.puts} then stands there"] if rule.puts else []
    comes += [f"you are no longer {rule.need}"] if rule.need else []
    return f"To {rule.action}, {', '.join(wants) or 'nothing is needed'}; {comes[0] if comes else 'no use'}."


class Craft(TextEnv):
    """Gather, build and craft: as many different achievements as there are.

    Six places form a ring. Each source lies in one of the places that suit it; both are drawn from
    ``world_seed``. Every action is always admissible, but most have no effect, and the observation does not
    say what is missing. Three kinds of things that can be gathered have no use, and pastimes have a caption
    but change nothing. The reward is 1 for each achievement that is new in the episode, so the return counts
    them. The episode ends with success when all of them are reached. ``info["event"]`` is the action if it
    had an effect, except walking.

    With a target, one achievement is the task: it alone is rewarded and ends the episode. The action ``done``
    gives up and also ends it. ``manual`` holds the recipes in words, and ``info["raw"]`` a :class:`Scene`.

    Args:
        difficulty: The first 10, 16 or 22 of the achievements.
        world_seed: Seed of places and sources.
        pastimes: Number of actions that always work and change nothing, at most 12.
        target: An achievement, or ``any`` for a different one in every episode. Default: as many as possible.
        failure: Probability that an effective action fails; the items that it uses are lost.
        most: Maximum number of items of a kind that can be held; always one of each tool.
        described: Give the recipes as descriptions of the actions, which decision models read.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"``.

    Raises:
        UsageError: if there is no such target.
    """

    task = "try as many different useful things as you can"
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"]}  # type: ignore[misc]
    offers: ClassVar[Sequence[Offer]] = ("events", "raw")

    def __init__(
        self,
        *,
        difficulty: Difficulty = "medium",
        world_seed: NonNegativeInt = 0,
        pastimes: Annotated[int, Interval(ge=0, le=len(PASTIMES))] = len(PASTIMES),
        target: str = "",
        failure: Share = 0.0,
        most: PositiveInt = MOST,
        described: bool = False,
        max_steps: PositiveInt = 100,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        self.failure, self.most = failure, most
        self.achievements = tuple(rule.action for rule in RULES[: LEVELS[difficulty]])
        idle = tuple(Rule(action) for action in PASTIMES[:pastimes])
        self.rules = {rule.action: rule for rule in (*RULES[: LEVELS[difficulty]], *POINTLESS, *idle)}
        rng = np.random.default_rng(world_seed)
        self.ring = tuple(NAMES[i] for i in rng.permutation(len(NAMES)))
        self.where = {source: places[rng.integers(len(places))] for source, places in PLACES.items()}
        walks = tuple(f"go to {name}" for name in NAMES)
        self.target = target
        self.choices = (*walks, *self.rules, *HOPELESS, *((DONE,) if target else ()))
        self.manual = manual(tuple(self.rules.values()))
        self.described = described
        self.recipes = {action: recipe(rule) for action, rule in self.rules.items()}
        if target not in ("", ANY, *self.achievements):
            raise UsageError(f"There is no target {target!r}; {suggest(target, (ANY, *self.achievements))}")
        self._forget()

    def _forget(self) -> None:
        self.at = self.ring[0]
        self.held: dict[str, int] = {}
        self.stations: dict[str, frozenset[str]] = {}
        self.needs: tuple[str, ...] = NEEDS
        self.done: tuple[str, ...] = ()

    def neighbours(self, place: str) -> tuple[str, str]:
        """Return the two places next to a place."""
        i = self.ring.index(place)
        return self.ring[i - 1], self.ring[(i + 1) % len(self.ring)]

    def works(self, rule: Rule) -> bool:
        """Return whether an action would have an effect in the current state."""
        here = self.stations.get(self.at, frozenset())
        return (
            (not rule.source or self.where[rule.source] == self.at)
            and (not rule.tool or rule.tool in self.held)
            and here.issuperset(rule.near)
            and all(self.held.get(thing, 0) >= n for thing, n in rule.uses)
            and (not rule.gives or self.held.get(rule.gives, 0) < (1 if rule.makes else self.most))
            and (not rule.puts or rule.puts not in here)
            and (not rule.need or rule.need in self.needs)
        )

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Craft has no reset option {next(iter(options))!r}.")
        self._forget()
        if self.target:
            drawn = self.achievements[int(self.task_random.integers(len(self.achievements)))]
            self.task = drawn if self.target == ANY else self.target
        return Outcome(self._text(), self.choices)

    def _move(self, action: str) -> Outcome:
        rule = self.rules.get(action)
        works = rule is not None and self.works(rule)
        place = action.removeprefix("go to ")
        fails = self.failure > 0 and bool(self.np_random.random() < self.failure)
        if rule is None or not works or fails:
            if rule is not None and works:
                self._use(rule)
            elif place in self.neighbours(self.at) and not fails:
                self.at = place
            return Outcome(self._text(), self.choices, terminated=action == DONE)
        self._apply(rule)
        first = action in self.achievements and action not in self.done
        if first:
            self.done = (*self.done, action)
        over = self.task in self.done if self.target else len(self.done) == len(self.achievements)
        reward = float(over) if self.target else float(first)
        return Outcome(self._text(), self.choices, reward, over, over, event=action)

    def _use(self, rule: Rule) -> None:
        for thing, n in rule.uses:
            self.held[thing] -= n
            if not self.held[thing]:
                del self.held[thing]

    def _apply(self, rule: Rule) -> None:
        self._use(rule)
        if rule.gives:
            self.held[rule.gives] = self.held.get(rule.gives, 0) + 1
        if rule.puts:
            self.stations[self.at] = self.stations.get(self.at, frozenset()) | {rule.puts}
        self.needs = tuple(need for need in self.needs if need != rule.need)

    def _text(self) -> str:
        sources = tuple(source for source, place in self.where.items() if place == self.at)
        here = tuple(sorted(self.stations.get(self.at, ())))
        self.scene = Scene(self.at, tuple(sorted(self.held.items())), (*sources, *here))
        return _told(self.at, self.neighbours(self.at), self.scene.near, self.scene.held, self.needs)

    def _raw(self) -> Scene:
        return self.scene

    def _extras(self) -> dict[str, Any]:
        described = {"action_descriptions": self.recipes} if self.described else {}
        return {"achievements": self.done, **described}

    def unshare(self, memo: dict[int, Any]) -> None:
        """Copy what a step changes in place."""
        self.held, self.stations = dict(self.held), dict(self.stations)


@lru_cache(maxsize=1 << 15)
def _told(
    place: str, near: tuple[str, ...], seen: tuple[str, ...], held: Held, needs: tuple[str, ...]
) -> str:
    """The observation."""
    lines = [f"You are in the {place}, next to the {' and the '.join(near)}."]
    lines += [f"You see {', '.join(seen)}."] if seen else []
    lines += [f"You have {', '.join(f'{n} {thing}' for thing, n in held)}."] if held else []
    lines += [f"You are {', '.join(needs)}."] if needs else []
    return "\n".join(lines)
