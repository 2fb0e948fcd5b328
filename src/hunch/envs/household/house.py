"""A game prepared for play: everything that never changes, with numbers as names and bit masks as sets.

A set of objects (or of receptacles) is an integer whose bit ``i`` stands for object (receptacle) ``i``; they
are numbered in the order of their identifiers, which is the order in which the engine lists them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from hunch.envs.household.problem import Fact, Problem


class Move(NamedTuple):
    """A parsed command: a verb with the numbers of an object and a receptacle, -1 for none."""

    verb: str
    thing: int = -1
    receptacle: int = -1


class Menu(NamedTuple):
    """The admissible commands, sorted, with the parsed command of each."""

    commands: tuple[str, ...]
    moves: dict[str, Move]


def bits(mask: int) -> Iterator[int]:
    """Yield the members of a set that is a bit mask, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class House:
    """The constant part of a game. It is shared by copies, so that copying a game is cheap.

    Attributes:
        things: The names of the objects, such as ``"mug 2"``.
        receptacles: The names of the receptacles.
        locations: The names of the places.
        place: Place of each receptacle, -1 for none.
        at: Receptacles at each place.
        fits: For each object, the set of receptacles that it fits into.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._facts: dict[str, list[Fact]] = {}
        for predicate, *arguments in problem.facts:
            self._facts.setdefault(predicate, []).append(tuple(arguments))
        ids = sorted({name for arguments in self._facts.values() for fact in arguments for name in fact})
        names, types = _names(ids), dict(problem.objects)
        by_type: dict[str, list[str]] = {"object": [], "receptacle": [], "location": []}
        for id in ids:
            by_type.setdefault(types.get(id, ""), []).append(id)
        self._numbers = {id: i for members in by_type.values() for i, id in enumerate(members)}
        self.things = [names[id] for id in by_type["object"]]
        self.receptacles = [names[id] for id in by_type["receptacle"]]
        self.locations = [names[id] for id in by_type["location"]]
        self._lay_out()
        self._classify()
        self._set_goal()
        # Play returns to the same few situations again and again.
        self.menu: Callable[..., Menu] = lru_cache(maxsize=512)(self._menu)
        self.listing: Callable[[int], str] = lru_cache(maxsize=512)(self._listing)

    def pairs(self, predicate: str) -> list[tuple[int, int]]:
        """Return the numbers of the two arguments of each fact of a predicate."""
        return [(self._numbers[a], self._numbers[b]) for a, b in self._facts.get(predicate, ())]

    def those(self, predicate: str) -> int:
        """Return the set of objects for which a predicate holds at the start."""
        return _mask(self._numbers[name] for (name,) in self._facts.get(predicate, ()))

    def _lay_out(self) -> None:
        self.place = [-1] * len(self.receptacles)
        for receptacle, location in self.pairs("receptacleatlocation"):
            self.place[receptacle] = location
        everywhere = range(len(self.locations))
        self.at = [tuple(r for r, place in enumerate(self.place) if place == here) for here in everywhere]
        self.ways = [
            {
                f"go to {self.receptacles[r]}": Move("go", receptacle=r)
                for r, place in enumerate(self.place)
                if place not in (-1, here)
            }
            for here in everywhere
        ]
        self.start = self._numbers[self._facts["atlocation"][0][1]]

    def _classify(self) -> None:
        fitting = set(self._facts.get("cancontain", ()))
        object_types = self._facts.get("objecttype", ())
        receptacle_types = self._facts.get("receptacletype", ())
        self.fits = [0] * len(self.things)
        for thing, kind in object_types:
            self.fits[self._numbers[thing]] |= _mask(
                self._numbers[receptacle]
                for receptacle, holder in receptacle_types
                if (holder, kind) in fitting
            )
        self.openable, self.pickupable = self.those("openable"), self.those("pickupable")
        self.toggleable, self.sliceable = self.those("toggleable"), self.those("sliceable")
        self.movable_receptacles = self.those("isreceptacleobject")
        self.knives = self.of_class("knife") | self.of_class("butterknife")
        self.treatments = (
            ("clean", self.those("cleanable"), self.of_class("sinkbasin")),
            ("heat", self.those("heatable"), self.of_class("microwave")),
            ("cool", self.those("coolable"), self.of_class("fridge")),
        )
        self.inside = [0] * len(self.things)
        for inner, outer in self.pairs("inreceptacleobject"):
            self.inside[outer] |= 1 << inner

    def _set_goal(self) -> None:
        goal = self.problem.goal
        self.goal_things, self.goal_targets = self.of_class(goal.object), self.of_class(goal.target)
        for verb, treatable, _ in self.treatments:
            if goal.kind == verb:
                self.goal_things &= treatable
        if goal.kind == "examine":
            self.goal_targets &= self.toggleable

    def of_class(self, name: str) -> int:
        """Return the set of objects (or receptacles) of a class such as ``"mug"`` (``"cabinet"``)."""
        typed = self._facts.get("objecttype", []) + self._facts.get("receptacletype", [])
        return _mask(self._numbers[id] for id, kind in typed if kind == f"{name}type")

    def _menu(self, location: int, held: int, opened: int, contents: tuple[int, ...], sliceable: int) -> Menu:
        """The commands of a situation.

        Args:
            location: The agent's place.
            held: The object in hand, or -1.
            opened: The open ones among the receptacles here.
            contents: For each receptacle here the set of objects in it.
            sliceable: The objects here that can be sliced.
        """
        moves = {"look": Move("look"), "inventory": Move("inventory"), **self.ways[location]}
        if self.problem.wording.help:
            moves["help"] = Move("help")
        for receptacle, inside in zip(self.at[location], contents, strict=True):
            moves |= self._moves_at(receptacle, inside, held, bool(opened >> receptacle & 1))
        if held >= 0:
            name = self.things[held]
            moves[f"examine {name}"] = Move("inspect", held)
            if self.knives >> held & 1:
                moves |= {f"slice {self.things[o]} with {name}": Move("slice", o) for o in bits(sliceable)}
        return Menu(tuple(sorted(moves)), moves)

    def _moves_at(self, receptacle: int, inside: int, held: int, opened: bool) -> dict[str, Move]:
        name = self.receptacles[receptacle]
        openable = self.openable >> receptacle & 1
        moves = {f"examine {name}": Move("examine", receptacle=receptacle)}
        if openable:
            verb = "close" if opened else "open"
            moves[f"{verb} {name}"] = Move(verb, receptacle=receptacle)
        for thing in bits(inside & self.toggleable):
            moves[f"use {self.things[thing]}"] = Move("use", thing)
        if held >= 0:
            moves |= self._moves_with(held, receptacle, opened or not openable)
        elif opened or not openable:
            for thing in bits(inside & self.pickupable):
                moves[f"take {self.things[thing]} from {name}"] = Move("take", thing, receptacle)
        return moves

    def _moves_with(self, held: int, receptacle: int, accessible: bool) -> dict[str, Move]:
        thing, name = self.things[held], self.receptacles[receptacle]
        # Cleaning, heating and cooling work through a closed door, as in the engine.
        moves = {
            f"{verb} {thing} with {name}": Move(verb, held, receptacle)
            for verb, treatable, where in self.treatments
            if treatable >> held & where >> receptacle & 1
        }
        if accessible and self.fits[held] >> receptacle & 1:
            moves[self.put(thing, name)] = Move("put", held, receptacle)
        return moves

    def put(self, thing: str, receptacle: str) -> str:
        """Return the command that puts an object somewhere."""
        return (
            f"put {thing} in/on {receptacle}"
            if self.problem.wording.put_in_on
            else f"move {thing} to {receptacle}"
        )

    def _listing(self, things: int) -> str:
        return enumerate_names([f"a {self.things[o]}" for o in bits(things)])

    def __deepcopy__(self, memo: dict[int, object]) -> House:
        return self

    def __reduce__(self) -> tuple[type[House], tuple[Problem]]:
        return House, (self.problem,)


def enumerate_names(names: list[str]) -> str:
    """Join names as the engine does: ``a``, ``a, and b``, ``a, b, and c``, or ``nothing``."""
    *first, last = names or ["nothing"]
    return f"{', '.join(first)}, and {last}" if first else last


def _mask(members: Iterable[int]) -> int:
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask


def _names(ids: list[str]) -> dict[str, str]:
    """Name everything as the engine does: class and number, the first identifier with the highest number."""
    classes = {id: _class_name(id) for id in ids}
    left = Counter(classes.values())
    names = {}
    for id, name in classes.items():
        names[id] = f"{name} {left[name]}" if "_bar_" in id else name
        left[name] -= 1
    return names


def _class_name(id: str) -> str:
    name, bar, _ = id.partition("_bar_")
    return name + "basin" if bar and "basin" in id else name
