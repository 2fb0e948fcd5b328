"""Thirty instructions in four families, as in SayCan, each with its goal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib import resources
from itertools import chain, combinations, permutations, product
from typing import Final, NamedTuple, TypeAlias

from hunch.envs.kitchen.world import CONTAINERS, DONE, HOMES, NOWHERE, PLACES, SURFACES, THINGS, Scene


class Fact(NamedTuple):
    """A fact about a scene: a thing is at a place or held, or a place is near or open.

    Attributes:
        kind: at, held, near or open.
        what: The thing, or the place.
        place: The place, for at; else empty.
    """

    kind: str
    what: str
    place: str = ""

    def holds(self, scene: Scene) -> bool:
        """Return whether the fact holds in a scene."""
        if self.kind == "near":
            return scene.beside == self.what
        if self.kind == "open":
            return self.what in scene.opened
        return scene.place_of(self.what) == (self.place or "hand")


Goal: TypeAlias = tuple[tuple[Fact, ...], ...]
"""Alternatives, each a set of facts that must hold at the same time."""


def reached(goal: Goal, scene: Scene) -> bool:
    """Return whether a goal is reached."""
    return any(all(fact.holds(scene) for fact in facts) for facts in goal)


class Errand(NamedTuple):
    """An instruction with its goal.

    Attributes:
        text: Text of the instruction.
        family: Form of the wording: primitive, words, nouns or long.
        goal: Facts that must hold when the robot takes the action ``done``.
    """

    text: str
    family: str
    goal: Goal


def _at(*pairs: str) -> tuple[Fact, ...]:
    return tuple(Fact("at", *pair.split(">")) for pair in pairs)


def _held(thing: str) -> Goal:
    return ((Fact("held", thing),),)


def _placing(place: str, *choices: str) -> Goal:
    """Each word names things of which any one will do, such as "cola|water"; all go to the place."""
    alternatives = product(*(choice.split("|") for choice in choices))
    return tuple(_at(*(f"{thing}>{place}" for thing in things)) for things in alternatives)


def _bring(*choices: str) -> Goal:
    return _placing("person", *choices)


ERRANDS: Final = (
    Errand("Pick up the apple.", "primitive", _held("apple")),
    Errand("Go to the bin.", "primitive", ((Fact("near", "bin"),),)),
    Errand("Open the fridge.", "primitive", ((Fact("open", "fridge"),),)),
    Errand("Put the orange on the table.", "primitive", _placing("table", "orange")),
    Errand("Put the cup in the sink.", "primitive", _placing("sink", "cup")),
    Errand("Get rid of the apple.", "words", _placing("bin", "apple")),
    Errand("Toss the orange into the trash.", "words", _placing("bin", "orange")),
    Errand("Fetch the sponge for me.", "words", _bring("sponge")),
    Errand("Hand me a cup.", "words", _bring("cup")),
    Errand("Could you give me the water?", "words", _bring("water")),
    Errand("Move the sponge over to the counter.", "words", _placing("counter", "sponge")),
    Errand("Carry the apple to the washbasin, please.", "words", _placing("sink", "apple")),
    Errand("I would like a fruit.", "nouns", _bring("apple|orange")),
    Errand("I am thirsty, bring me a drink.", "nouns", _bring("cola|water")),
    Errand("I am hungry, bring me something to eat.", "nouns", _bring("chips|apple|orange")),
    Errand("Bring me something sweet.", "nouns", _bring("cola|apple|orange")),
    Errand("Bring me something refreshing.", "nouns", _bring("cola|water|apple|orange")),
    Errand("Throw one of the fruits away.", "nouns", _placing("bin", "apple|orange")),
    Errand("Put a drink on the table.", "nouns", _placing("table", "cola|water")),
    Errand("Put some food on the counter.", "nouns", _placing("counter", "chips|apple|orange")),
    Errand("I need something to clean up with.", "nouns", _bring("sponge")),
    Errand("Bring me a soda.", "nouns", _bring("cola")),
    Errand("I would like a salty snack.", "nouns", _bring("chips")),
    Errand("Put the apple and the orange on the table.", "long", _placing("table", "apple", "orange")),
    Errand("Throw away the apple and bring me the orange.", "long", (_at("apple>bin", "orange>person"),)),
    Errand("Put the cup and the sponge in the sink.", "long", _placing("sink", "cup", "sponge")),
    Errand("Bring me the cup and a drink.", "long", _bring("cup", "cola|water")),
    Errand("I spilled my drink, bring me a sponge and another one.", "long", _bring("sponge", "cola|water")),
    Errand("Bring me a fruit and something salty.", "long", _bring("apple|orange", "chips")),
    Errand("Set the table with a cup and a fruit.", "long", _placing("table", "cup", "apple|orange")),
)


@cache
def paraphrases() -> tuple[Errand, ...]:
    """Return three other wordings of every errand, which were written before any planner read them."""
    paraphrased = json.loads(
        (resources.files("hunch.envs.kitchen") / "paraphrases.json").read_text(encoding="utf-8")
    )
    return tuple(errand._replace(text=text) for errand in ERRANDS for text in paraphrased[errand.text])


FAMILIES: Final = ("primitive", "words", "nouns", "long")


def possible(goal: Goal, scene: Scene) -> bool:
    """Return whether the scene has the things for at least one of the alternatives."""
    return any(
        all(f.what not in THINGS or scene.place_of(f.what) != NOWHERE for f in facts) for facts in goal
    )


class Example(NamedTuple):
    """An instruction with a plan, as an example for planners."""

    task: str
    plan: tuple[str, ...]


def _fetched(thing: str) -> tuple[str, ...]:
    home = HOMES[thing]
    opened = (f"go to the {home}", f"open the {home}") if home else ()
    return (*opened, f"find the {thing}", f"pick up the {thing}")


def _placed(thing: str, place: str) -> tuple[str, ...]:
    return (*_fetched(thing), f"go to the {place}", f"put down the {thing}")


def plans(goal: Goal) -> tuple[tuple[str, ...], ...]:
    """Return the plans that reach a goal with everything in its usual place, in any order of its facts.

    The plan may open a container again that it has opened before.
    """
    orders = (order for facts in goal for order in permutations(facts))
    whole = [(*chain.from_iterable(map(_ways, order)), DONE) for order in orders]
    return tuple(dict.fromkeys([*whole, *map(_opened_once, whole)]))


def _ways(fact: Fact) -> tuple[str, ...]:
    """Return the skills that make a fact true."""
    if fact.kind == "at":
        return _placed(fact.what, fact.place)
    if fact.kind == "held":
        return _fetched(fact.what)
    go = f"go to the {fact.what}"
    return (go, f"open the {fact.what}") if fact.kind == "open" else (go,)


def _opened_once(plan: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out what opens a container again, and the way to it."""
    again = [i for i, skill in enumerate(plan) if skill.startswith("open ") and skill in plan[:i]]
    return tuple(skill for i, skill in enumerate(plan) if i not in again and i + 1 not in again)


def _said(things: str, place: str) -> str:
    if place == "person":
        return f"Bring me {things}."
    if place == "bin":
        return f"Throw away {things}."
    return f"Put {things} {'in' if place == 'sink' else 'on'} the {place}."


def _examples() -> Iterator[Example]:
    for place in PLACES:
        yield Example(f"Go to the {place}.", (f"go to the {place}", DONE))
    for place in CONTAINERS:
        yield Example(f"Open the {place}.", (f"go to the {place}", f"open the {place}", DONE))
    for thing in THINGS:
        yield Example(f"Pick up the {thing}.", (*_fetched(thing), DONE))
    goals = ("person", "bin", *SURFACES)
    for thing, place in product(THINGS, goals):
        yield Example(_said(f"the {thing}", place), (*_placed(thing, place), DONE))
    for (one, other), place in product(combinations(THINGS, 2), goals):
        plan = (*_placed(one, place), *_placed(other, place), DONE)
        yield Example(_said(f"the {one} and the {other}", place), plan)


EXAMPLES: Final = tuple(_examples())
"""Plain instructions of every kind with their plans, with everything in its usual place."""
