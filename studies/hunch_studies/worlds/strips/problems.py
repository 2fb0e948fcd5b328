"""Problems drawn at random, of the domains that come with Hunch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from hunch_studies.worlds.strips.blocksworld import blocks_named, facts, towers
from hunch_studies.worlds.strips.pddl import Atom, Condition, Domain, Problem, Types, read, read_domain

FOLDER = Path(__file__).parent / "domains"
"""The PDDL files."""

Rng: TypeAlias = np.random.Generator


@cache
def domain(name: str) -> Domain:
    """Read one of the domains that come with Hunch, such as ``"blocksworld"``."""
    return read_domain(read(FOLDER / f"{name}.pddl"), f"The domain {name}")


def blocksworld(rng: Rng, blocks: int) -> Problem:
    """Return a problem of rebuilding towers of blocks; the goal says which block is on which."""
    names = blocks_named(blocks)

    def goal() -> list[Atom]:
        return [atom for atom in facts(towers(rng, names)) if atom[0] == "on"]

    return _open(facts(towers(rng, names)), goal, "blocksworld", _of("object", names))


def logistics(
    rng: Rng, cities: int, locations: int, packages: int, airplanes: int, anonymous: bool
) -> Problem:
    """Return a problem of moving packages; each city has a truck, and its first location is the airport.

    ``anonymous`` calls all objects o0, o1 and so on.
    """
    spots = [[f"l{c}-{i}" for i in range(locations)] for c in range(cities)]
    every = [spot for city in spots for spot in city]
    things = {
        **dict.fromkeys([f"p{i}" for i in range(packages)], "obj"),
        **{f"t{c}": "truck" for c in range(cities)},
        **dict.fromkeys([f"a{i}" for i in range(airplanes)], "airplane"),
        **dict.fromkeys(every, "location"),
        **{f"c{c}": "city" for c in range(cities)},
    }
    init: list[Atom] = [(kind, name) for name, kind in things.items()]
    init += [("airport", city[0]) for city in spots]
    init += [("in-city", spot, f"c{c}") for c, city in enumerate(spots) for spot in city]
    init += [("at", f"t{c}", _any(rng, city)) for c, city in enumerate(spots)]
    init += [("at", f"a{i}", _any(rng, [city[0] for city in spots])) for i in range(airplanes)]
    init += [("at", f"p{i}", _any(rng, every)) for i in range(packages)]

    def goal() -> list[Atom]:
        return [("at", f"p{i}", _any(rng, every)) for i in range(packages)]

    problem = _open(init, goal, "logistics", _of("object", things))
    return _renamed(problem) if anonymous else problem


def gripper(rng: Rng, balls: int, rooms: int) -> Problem:
    """Return a problem of carrying balls to other rooms."""
    places, things = [f"room{i}" for i in range(rooms)], [f"ball{i}" for i in range(balls)]
    init: list[Atom] = [("at-robot", _any(rng, places)), ("free", "left"), ("free", "right")]
    init += [("at", ball, _any(rng, places)) for ball in things]
    objects = {**_of("room", places), **_of("ball", things), **_of("gripper", ["left", "right"])}
    return _open(init, lambda: [("at", b, _any(rng, places)) for b in things], "gripper", objects)


def ferry(rng: Rng, cars: int, places: int) -> Problem:
    """Return a problem of taking cars to other places."""
    ports, things = [f"place{i}" for i in range(places)], [f"car{i}" for i in range(cars)]
    init: list[Atom] = [("at-ferry", _any(rng, ports)), ("empty-ferry",)]
    init += [("at", car, _any(rng, ports)) for car in things]
    objects = {**_of("place", ports), **_of("car", things)}
    return _open(init, lambda: [("at", c, _any(rng, ports)) for c in things], "ferry", objects)


def miconic(rng: Rng, floors: int, passengers: int) -> Problem:
    """Return a problem of taking passengers to other floors."""
    levels, people = [f"f{i}" for i in range(floors)], [f"p{i}" for i in range(passengers)]
    init: list[Atom] = [("above", low, high) for i, low in enumerate(levels) for high in levels[i + 1 :]]
    init.append(("lift-at", _any(rng, levels)))
    for person in people:
        origin, destination = rng.permutation(floors)[:2]
        init += [("origin", person, levels[origin]), ("destin", person, levels[destination])]
    objects = {**_of("floor", levels), **_of("passenger", people)}
    return _problem(init, [("served", person) for person in people], "miconic", objects)


def _of(kind: str, names: Iterable[str]) -> dict[str, Types]:
    return dict.fromkeys(names, (kind,))


def _any(rng: Rng, names: Sequence[str]) -> str:
    return names[int(rng.integers(len(names)))]


def _open(
    init: Iterable[Atom], goal: Callable[[], list[Atom]], name: str, objects: Mapping[str, Types]
) -> Problem:
    """A problem with a goal that does not hold yet, drawn until one is found."""
    facts = frozenset(init)
    while facts.issuperset(wanted := goal()):
        pass
    return _problem(facts, wanted, name, objects)


def _problem(init: Iterable[Atom], goal: list[Atom], name: str, objects: Mapping[str, Types]) -> Problem:
    return Problem(domain(name), objects, frozenset(init), Condition(tuple(goal)), name)


def _renamed(problem: Problem) -> Problem:
    """The same problem with objects o0, o1 and so on, in the order of their names."""
    names = {name: f"o{i}" for i, name in enumerate(sorted(problem.objects))}

    def told(atom: Atom) -> Atom:
        return (atom[0], *(names[term] for term in atom[1:]))

    objects = {new: problem.objects[old] for old, new in names.items()}
    goal = Condition(tuple(map(told, problem.goal.positive)))
    return Problem(problem.domain, objects, frozenset(map(told, problem.init)), goal, problem.name)
