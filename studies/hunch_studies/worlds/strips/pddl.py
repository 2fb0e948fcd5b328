"""PDDL with :strips, :typing, :equality and :negative-preconditions, read into plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeAlias

from hunch.core import UsageError
from hunch.envs.household.pddl import Tree, parse
from hunch.text_files import read_text

Atom: TypeAlias = tuple[str, ...]
"""A predicate or an action with its terms, such as ``("on", "a", "b")``; variables begin with ``?``."""
Types: TypeAlias = tuple[str, ...]
"""Possible types of a term; more than one for ``(either ...)``."""

SUPPORTED = (":strips", ":typing", ":equality", ":negative-preconditions")
ANYTHING: Types = ("object",)


@dataclass(frozen=True)
class Condition:
    """A conjunction of literals.

    Attributes:
        positive: Atoms that have to be true.
        negative: Atoms that have to be false.
        equal: Pairs of terms that have to be the same.
        unequal: Pairs of terms that have to differ.
    """

    positive: tuple[Atom, ...] = ()
    negative: tuple[Atom, ...] = ()
    equal: tuple[Atom, ...] = ()
    unequal: tuple[Atom, ...] = ()


@dataclass(frozen=True)
class Action:
    """An action with parameters.

    Attributes:
        name: Its name.
        parameters: Each variable with its types, in order.
        condition: What has to hold before.
        add: Atoms that are true afterwards.
        delete: Atoms that are false afterwards, unless they are in ``add`` too.
    """

    name: str
    parameters: tuple[tuple[str, Types], ...]
    condition: Condition
    add: tuple[Atom, ...]
    delete: tuple[Atom, ...]


@dataclass(frozen=True)
class Domain:
    """A planning domain.

    Attributes:
        name: Its name.
        supertypes: For each type the types above it, itself and ``object`` included.
        constants: Objects of every problem, with their types.
        predicates: For each predicate the types of its terms.
        actions: The actions by name.
    """

    name: str
    supertypes: Mapping[str, frozenset[str]]
    constants: Mapping[str, Types]
    predicates: Mapping[str, tuple[Types, ...]]
    actions: Mapping[str, Action]

    def fits(self, given: Types, wanted: Types) -> bool:
        """Return whether an object of the given types can be used as one of the wanted types."""
        return any(self.supertypes[kind] & set(wanted) for kind in given)


@dataclass(frozen=True)
class Problem:
    """Objects, the facts that are true at the start, and the goal.

    Attributes:
        domain: Its domain.
        objects: The objects with their types, constants of the domain included.
        init: The atoms that are true at the start; all others are false.
        goal: The condition to reach.
        name: Its name.
    """

    domain: Domain
    objects: Mapping[str, Types]
    init: frozenset[Atom]
    goal: Condition
    name: str = field(default="", compare=False)


def read(path: str | Path) -> str:
    """Return the text of a file of planning problems.

    Raises:
        UsageError: if the file does not exist, or is not text.
    """
    try:
        return read_text(path)
    except OSError as error:
        raise UsageError(f"The file {str(path)!r} cannot be read: {error.strerror}.") from None


def read_domain(text: str, name: str = "The domain") -> Domain:
    """Read a domain.

    Args:
        text: PDDL.
        name: What to call it in messages.

    Raises:
        UsageError: if it is not a domain, uses more than :data:`SUPPORTED`, or contradicts itself.
    """
    try:
        return _domain(_definition(text, "domain"))
    except (ValueError, UsageError) as error:
        raise UsageError(f"{name} cannot be used: {_plain(error)}.") from None


def read_problem(text: str, domain: Domain, name: str = "The problem") -> Problem:
    """Read a problem of a domain. The domain's name in it is not compared.

    Args:
        text: PDDL.
        domain: Its domain.
        name: What to call it in messages.

    Raises:
        UsageError: if it is not a problem, or uses names that neither it nor its domain declares.
    """
    try:
        return _problem(_definition(text, "problem"), domain)
    except (ValueError, UsageError) as error:
        raise UsageError(f"{name} cannot be used: {_plain(error)}.") from None


def _plain(error: Exception) -> str:
    return str(error).rstrip(".")


def _definition(text: str, kind: str) -> tuple[str, list[list[Tree]]]:
    """Name and sections of a definition."""
    match parse(text):
        case ["define", [str(found), str(name)], *sections] if found == kind:
            lists = [section for section in sections if isinstance(section, list) and section]
            if len(lists) == len(sections):
                return name, lists
    _refuse(f"it is not of the form (define ({kind} NAME) ...)")


def _refuse(why: str) -> NoReturn:
    raise ValueError(why)


def _domain(definition: tuple[str, list[list[Tree]]]) -> Domain:
    name, sections = definition
    known = (":requirements", ":types", ":constants", ":predicates", ":functions")
    found: dict[str, list[Tree]] = {}
    actions: list[list[Tree]] = []
    for head, *body in sections:
        if head == ":action":
            actions.append(body)
        elif head not in known or (head == ":functions" and body):
            _refuse(f"it has a section {_shown(head)}, which is not supported")
        elif found.setdefault(str(head), body) is not body:
            _refuse(f"it has two sections {head}")
    _check_requirements(found.get(":requirements", []))
    supertypes = _supertypes(dict(_typed(found.get(":types", []))))
    constants = dict(_typed(found.get(":constants", [])))
    predicates = dict(_signature(tree) for tree in found.get(":predicates", []))
    domain = Domain(name, supertypes, constants, predicates, {})
    for types in [*constants.values(), *(t for signature in predicates.values() for t in signature)]:
        _check_types(types, domain)
    read = [_action(body, domain) for body in actions]
    if len({action.name for action in read}) < len(read):
        _refuse("two actions have the same name")
    return Domain(name, supertypes, constants, predicates, {action.name: action for action in read})


def _check_requirements(requirements: Sequence[Tree]) -> None:
    asked = [str(requirement) for requirement in requirements if requirement not in SUPPORTED]
    if asked:
        _refuse(f"it asks for {', '.join(asked)}, and only {', '.join(SUPPORTED)} are supported")


def _shown(tree: Tree) -> str:
    return tree if isinstance(tree, str) else f"({' '.join(map(_shown, tree))})"


def _typed(trees: Sequence[Tree]) -> Iterator[tuple[str, Types]]:
    """Names and types of a list such as ``a b - block c``; those that come without are objects."""
    waiting: list[str] = []
    rest = iter(trees)
    for tree in rest:
        if not isinstance(tree, str):
            _refuse(f"{_shown(tree)} stands where a name belongs")
        if tree != "-":
            waiting.append(tree)
            continue
        yield from ((name, types) for types in [_types(next(rest, []))] for name in waiting)
        waiting = []
    yield from ((name, ANYTHING) for name in waiting)


def _types(tree: Tree) -> Types:
    match tree:
        case str():
            return (tree,)
        case ["either", *names] if names:
            return tuple(name for name in names if isinstance(name, str))
    _refuse("a dash in a list of names is not followed by a type")


def _supertypes(parents: Mapping[str, Types]) -> dict[str, frozenset[str]]:
    """All types above each type; a parent that is declared nowhere is an object."""
    every = {"object", *parents, *(parent for types in parents.values() for parent in types)}

    def above(kind: str, below: frozenset[str]) -> frozenset[str]:
        if kind in below:
            if kind == "object":
                return below
            _refuse(f"the type {kind} is above itself")
        upwards = (above(parent, below | {kind}) for parent in parents.get(kind, ANYTHING))
        return frozenset({kind, "object"}.union(*upwards) if kind != "object" else {"object"})

    return {kind: above(kind, frozenset()) for kind in every}


def _check_types(types: Types, domain: Domain) -> None:
    for kind in types:
        if kind not in domain.supertypes:
            _refuse(f"there is no type {kind}")


def _signature(tree: Tree) -> tuple[str, tuple[Types, ...]]:
    match tree:
        case [str(name), *terms]:
            return name, tuple(types for _, types in _typed(terms))
    _refuse(f"{_shown(tree)} is no predicate")


def _action(body: list[Tree], domain: Domain) -> Action:
    match body:
        case [str(name), *rest] if len(rest) % 2 == 0:
            parts = {str(key): value for key, value in zip(rest[::2], rest[1::2], strict=True)}
        case _:
            _refuse(f"the action {_shown(body[0]) if body else ''} cannot be read")
    if unknown := parts.keys() - {":parameters", ":precondition", ":effect"}:
        _refuse(f"the action {name} has {unknown.pop()}, which is not supported")
    trees = parts.get(":parameters", [])
    parameters = tuple(_typed(trees if isinstance(trees, list) else [trees]))
    if len(dict(parameters)) < len(parameters):
        _refuse(f"the action {name} has two parameters of one name")
    for _, types in parameters:
        _check_types(types, domain)
    terms = {**domain.constants, **dict(parameters)}
    effect = _condition(parts.get(":effect", []), domain, terms)
    if effect.equal or effect.unequal:
        _refuse(f"the action {name} has an effect on equality")
    condition = _condition(parts.get(":precondition", []), domain, terms)
    return Action(name, parameters, condition, effect.positive, effect.negative)


def _condition(tree: Tree, domain: Domain, terms: Mapping[str, Types]) -> Condition:
    """Read a conjunction of literals over these terms."""
    literals = tree[1:] if isinstance(tree, list) and tree[:1] == ["and"] else [tree] if tree else []
    found: dict[str, list[Atom]] = {"positive": [], "negative": [], "equal": [], "unequal": []}
    for literal in literals:
        negated = isinstance(literal, list) and literal[:1] == ["not"] and len(literal) == 2
        inner = literal[1] if negated else literal
        if isinstance(inner, list) and inner[:1] == ["and"] and not negated:
            nested = _condition(inner, domain, terms)
            for key, atoms in found.items():
                atoms.extend(getattr(nested, key))
            continue
        atom = _atom(inner, domain, terms)
        if atom[0] == "=":
            found["unequal" if negated else "equal"].append(atom[1:])
        else:
            found["negative" if negated else "positive"].append(atom)
    return Condition(**{key: tuple(dict.fromkeys(atoms)) for key, atoms in found.items()})


def _atom(tree: Tree, domain: Domain, terms: Mapping[str, Types]) -> Atom:
    """Read an atom, whose predicate and terms have to exist."""
    if not isinstance(tree, list) or not tree or not isinstance(tree[0], str):
        _refuse(f"{_shown(tree)} stands where an atom belongs")
    head = tree[0]
    if head in ("or", "imply", "forall", "exists", "when", "not", "increase", "decrease", "assign"):
        _refuse(f"({head} ...) is not supported")
    words = tuple(term if isinstance(term, str) else _refuse(f"{_shown(term)} is no term") for term in tree)
    if head not in domain.predicates and head != "=":
        _refuse(f"there is no predicate {head}")
    arity = 2 if head == "=" else len(domain.predicates[head])
    if len(words) != arity + 1:
        _refuse(f"{head} takes {arity} terms, not {len(words) - 1}")
    for word in words[1:]:
        if word not in terms:
            _refuse(f"{_shown(tree)} names {word}, which is not there")
    return words


def _problem(definition: tuple[str, list[list[Tree]]], domain: Domain) -> Problem:
    name, sections = definition
    found: dict[str, list[Tree]] = {}
    for head, *body in sections:
        if head not in (":domain", ":objects", ":init", ":goal", ":requirements"):
            _refuse(f"it has a section {_shown(head)}, which is not supported")
        if found.setdefault(str(head), body) is not body:
            _refuse(f"it has two sections {head}")
    if ":goal" not in found or ":init" not in found:
        _refuse("it has no section :init or no section :goal")
    _check_requirements(found.get(":requirements", []))
    objects = {**domain.constants, **_objects(found.get(":objects", []), domain)}
    init = frozenset(_atom(tree, domain, objects) for tree in found[":init"])
    if len(found[":goal"]) != 1:
        _refuse("its goal is not one expression")
    return Problem(domain, objects, init, _condition(found[":goal"][0], domain, objects), name)


def _objects(trees: Sequence[Tree], domain: Domain) -> dict[str, Types]:
    objects: dict[str, Types] = {}
    for name, types in _typed(trees):
        if name in objects:
            _refuse(f"the object {name} comes twice")
        _check_types(types, domain)
        objects[name] = types
    return objects
