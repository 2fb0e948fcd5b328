"""The six kinds of goal: their sentences, their PDDL, and their detection in game files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, get_args

from hunch.core import UsageError
from hunch.envs.household.pddl import Tree, atom, expression, parse, typed

Kind = Literal["pick", "examine", "clean", "heat", "cool", "picktwo"]
KINDS: tuple[Kind, ...] = get_args(Kind)

TASK_TYPES: dict[str, Kind] = {
    "pick_and_place_simple": "pick",
    "look_at_obj_in_light": "examine",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "pick_two_obj_and_place": "picktwo",
}
"""Kinds of goal by their names in ALFWorld."""

SENTENCES: dict[Kind, tuple[str, str]] = {
    "pick": ("put a {object} in {target}", "put some {object} on {target}"),
    "examine": ("look at {object} under the {target}", "examine the {object} with the {target}"),
    "clean": ("put a clean {object} in {target}", "clean some {object} and put it in {target}"),
    "heat": ("put a hot {object} in {target}", "heat some {object} and put it in {target}"),
    "cool": ("put a cool {object} in {target}", "cool some {object} and put it in {target}"),
    "picktwo": ("put two {object} in {target}", "find two {object} and put them in {target}"),
}

_PLACED = """(exists (?r - receptacle ?o - object) (and {state}
    (objecttype ?o {object}type) (receptacletype ?r {target}type) (inreceptacle ?o ?r)))"""
_PDDL: dict[Kind, str] = {
    "pick": _PLACED.replace("{state}", ""),
    "clean": _PLACED.replace("{state}", "(cleanable ?o) (isclean ?o)"),
    "heat": _PLACED.replace("{state}", "(heatable ?o) (ishot ?o)"),
    "cool": _PLACED.replace("{state}", "(coolable ?o) (iscool ?o)"),
    "picktwo": """(exists (?r - receptacle ?o1 - object ?o2 - object) (and (receptacletype ?r {target}type)
    (objecttype ?o1 {object}type) (inreceptacle ?o1 ?r) (not (= ?o1 ?o2))
    (objecttype ?o2 {object}type) (inreceptacle ?o2 ?r)))""",
    "examine": """(and (exists (?t - object ?r - receptacle ?a - agent ?l - location) (and
    (objecttype ?t {target}type) (toggleable ?t) (istoggled ?t) (inreceptacle ?t ?r)
    (receptacleatlocation ?r ?l) (atlocation ?a ?l)))
    (exists (?o - object ?b - agent) (and (objecttype ?o {object}type) (holds ?b ?o))))""",
}


_MOST_LITERALS = 8  # no known goal has more


class UnknownGoalError(UsageError):
    """The game's goal is none of the six kinds, so only the real engine can detect its end."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The goal of a game.

    Attributes:
        kind: One of :data:`KINDS`.
        object: The class of the object to handle, such as ``"mug"``.
        target: The class of the receptacle where the object belongs; for ``"examine"``, of the lamp.
    """

    kind: Kind
    object: str
    target: str

    def sentence(self, template: int) -> str:
        """Return the task in words; each kind has two templates, 0 and 1."""
        return SENTENCES[self.kind][template].format(object=self.object, target=self.target)

    def pddl(self) -> str:
        """Return the condition in PDDL."""
        return _PDDL[self.kind].format(object=self.object, target=self.target)


def recognise(tree: Tree) -> Goal:
    """Return the goal of a PDDL condition.

    Variables may have any names and conditions any order, but the meaning must be that of one of the six
    kinds.

    Raises:
        UnknownGoalError: if it has another meaning.
    """
    try:
        condition = _Condition(tree)
    except ValueError as error:
        raise UnknownGoalError(f"its goal is not one of the six known kinds ({error})") from None
    if len(condition.literals) > _MOST_LITERALS:
        raise UnknownGoalError(
            f"its goal has {len(condition.literals)} conditions, none of the six known kinds"
        )
    objects = condition.classes("objecttype")
    receptacles = condition.classes("receptacletype")
    for kind in KINDS:
        for thing in objects:
            for target in objects if kind == "examine" else receptacles:
                goal = Goal(kind, thing, target)
                if condition.same_as(_Condition(parse(goal.pddl()))):
                    return goal
    raise UnknownGoalError("its goal is not one of the six known kinds")


class _Condition:
    """A conjunction under existential quantifiers: its variables with their types, and its literals."""

    def __init__(self, tree: Tree) -> None:
        self.types: dict[str, str] = {}
        self.literals = set(self._read(tree, {}))

    def _read(self, tree: Tree, scope: dict[str, str]) -> Iterator[tuple[str, ...]]:
        head, *rest = expression(tree)
        if head == "and":
            for part in rest:
                yield from self._read(part, scope)
        elif head == "exists" and len(rest) == 2:
            yield from self._read(rest[1], scope | self._declare(rest[0]))
        elif head == "not" and len(rest) == 1:
            yield ("not", *(scope.get(word, word) for word in atom(rest[0])))
        else:
            yield tuple(scope.get(word, word) for word in atom(tree))

    def _declare(self, variables: Tree) -> dict[str, str]:
        # Two quantifiers may use one name for two things, so every variable gets a name of its own.
        new = {}
        for name, kind in typed(expression(variables)):
            new[name] = f"?{len(self.types)}"
            self.types[new[name]] = kind
        return new

    def classes(self, predicate: str) -> list[str]:
        """The classes that a type predicate names."""
        named = {words[-1] for words in self.literals if words[0] == predicate}
        return sorted(word.removesuffix("type") for word in named)

    def same_as(self, other: _Condition) -> bool:
        """Return whether the two differ in the names of variables at most."""
        if len(self.literals) != len(other.literals) or sorted(self.types.values()) != sorted(
            other.types.values()
        ):
            return False
        for names in permutations(other.types):
            renamed = dict(zip(self.types, names, strict=True))
            if any(self.types[old] != other.types[new] for old, new in renamed.items()):
                continue
            if {
                tuple(renamed.get(word, word) for word in words) for words in self.literals
            } == other.literals:
                return True
        return False
