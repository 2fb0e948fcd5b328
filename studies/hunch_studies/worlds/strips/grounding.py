"""Grounding: actions with objects for parameters, states as the bits of one integer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from hunch.core import UsageError
from hunch_studies.worlds.strips.pddl import Action, Atom, Condition, Domain, Problem, Types

MOST_OPERATORS = 200_000
"""Maximum number of grounded actions; a problem with more is refused."""


class Operator(NamedTuple):
    """An action with objects for its parameters. All but ``atom`` and ``number`` are sets of facts, as bits.

    Attributes:
        atom: Name and objects.
        number: Its index among the operators.
        needs: Facts that must be true.
        forbids: Facts that must be false.
        keeps: All facts except those that it deletes.
        adds: Facts that are true afterwards.
    """

    atom: Atom
    number: int
    needs: int
    forbids: int
    keeps: int
    adds: int

    def after(self, state: int) -> int:
        """Return the next state."""
        return state & self.keeps | self.adds


class Ground:
    """The grounded actions of a domain, given objects and static facts.

    A predicate is static if no action changes it. The actions are exactly those whose types, equalities and
    static preconditions hold; which of them apply in a state is a matter of the other facts.

    Args:
        domain: The domain.
        objects: The objects with their types.
        static: The static facts that are true.

    Attributes:
        operators: The grounded actions, in the order of the domain and of the objects.
        by_atom: The same by name and objects.
        facts: The facts that actions read or change; fact ``i`` is bit ``i`` of a state.
        index: The place of each fact.

    Raises:
        UsageError: if there are more than :data:`MOST_OPERATORS` actions.
    """

    def __init__(self, domain: Domain, objects: Mapping[str, Types], static: frozenset[Atom]) -> None:
        self.domain, self.objects, self.static = domain, objects, static
        self.changing = changing(domain)
        self.index: dict[Atom, int] = {}
        self.operators = tuple(self._operators())
        self.by_atom = {operator.atom: operator for operator in self.operators}
        self.facts = tuple(self.index)
        self._filed = _file(self.operators, len(self.facts))

    def bits(self, atoms: Iterable[Atom]) -> int:
        """These facts as bits.

        Raises:
            KeyError: if one of them is static or in no action.
        """
        return sum(1 << self.index[atom] for atom in set(atoms))

    def applicable(self, state: int) -> list[Operator]:
        """The operators that apply in a state, in their order."""
        found = [op for op in self._filed[-1] if not state & op.forbids]
        filed, rest = self._filed, state
        while rest:
            lowest = rest & -rest
            rest ^= lowest
            here = filed[lowest.bit_length() - 1]
            found += [op for op in here if state & op.needs == op.needs and not state & op.forbids]
        found.sort(key=_by_number)
        return found

    def _operators(self) -> Iterator[Operator]:
        index = 0
        matches = _Matches(self.static)
        for action in self.domain.actions.values():
            for binding in self._bindings(action, matches):
                yield self._operator(action, binding, index)
                index += 1
                self._count(index)

    def _operator(self, action: Action, binding: Mapping[str, str], index: int) -> Operator:
        condition = action.condition
        needs, forbids = self._bits(condition.positive, binding), self._bits(condition.negative, binding)
        adds, deletes = self._bits(action.add, binding), self._bits(action.delete, binding)
        atom = (action.name, *(binding[name] for name, _ in action.parameters))
        return Operator(atom, index, needs, forbids, ~(deletes & ~adds), adds)

    def _bits(self, atoms: Iterable[Atom], binding: Mapping[str, str]) -> int:
        result = 0
        for atom in atoms:
            if atom[0] in self.changing:
                result |= 1 << self.index.setdefault(bound(atom, binding), len(self.index))
        return result

    def _bindings(self, action: Action, matches: _Matches) -> Iterator[dict[str, str]]:
        """Every choice of objects that meets types, equalities and static preconditions."""
        allowed = {
            name: {o for o, given in self.objects.items() if self.domain.fits(given, types)}
            for name, types in action.parameters
        }
        static = [atom for atom in action.condition.positive if atom[0] not in self.changing]
        order = {name: place for place, name in enumerate(self.objects)}
        found: list[dict[str, str]] = []
        for part in matches.joined(static, allowed):
            for binding in _completed(part, allowed):
                if self._holds(action.condition, binding):
                    found.append(binding)
                    self._count(len(found))
        found.sort(key=lambda binding: [order[binding[name]] for name, _ in action.parameters])
        yield from found

    def _count(self, operators: int) -> None:
        if operators > MOST_OPERATORS:
            raise UsageError(f"The problem has more than {MOST_OPERATORS:,} actions.")

    def _holds(self, condition: Condition, binding: Mapping[str, str]) -> bool:
        """Return whether equalities and static literals hold."""
        return (
            all(binding.get(a, a) == binding.get(b, b) for a, b in condition.equal)
            and all(binding.get(a, a) != binding.get(b, b) for a, b in condition.unequal)
            and not any(bound(atom, binding) in self.static for atom in condition.negative)
        )


def _by_number(operator: Operator) -> int:
    return operator.number


def changing(domain: Domain) -> frozenset[str]:
    """The predicates that some action changes."""
    actions = domain.actions.values()
    return frozenset(atom[0] for action in actions for atom in (*action.add, *action.delete))


def bound(atom: Atom, binding: Mapping[str, str]) -> Atom:
    """An atom with objects in place of variables."""
    return tuple(binding.get(term, term) for term in atom)


def _file(operators: Sequence[Operator], n: int) -> list[list[Operator]]:
    """File each operator under the fact it needs that fewest others need; at the end those without needs.

    In a state only the operators under its true facts have to be looked at.
    """
    needed = [0] * n
    for operator in operators:
        for i in ones(operator.needs):
            needed[i] += 1
    filed: list[list[Operator]] = [[] for _ in range(n + 1)]
    for operator in operators:
        filed[min(ones(operator.needs), key=needed.__getitem__, default=-1)].append(operator)
    return filed


def ones(bits: int) -> Iterator[int]:
    """The places of the bits that are set, from the lowest on."""
    while bits:
        lowest = bits & -bits
        bits ^= lowest
        yield lowest.bit_length() - 1


class _Matches:
    """Static facts, to be found by predicate and by one of their objects."""

    def __init__(self, facts: Iterable[Atom]) -> None:
        self._by_predicate: dict[str, list[Atom]] = defaultdict(list)
        self._by_object: dict[tuple[str, int, str], list[Atom]] = defaultdict(list)
        for fact in sorted(facts):
            self._by_predicate[fact[0]].append(fact)
            for place, term in enumerate(fact[1:], 1):
                self._by_object[fact[0], place, term].append(fact)

    def joined(
        self, atoms: Sequence[Atom], allowed: Mapping[str, set[str]], binding: Mapping[str, str] | None = None
    ) -> Iterator[dict[str, str]]:
        """Every binding of the atoms' variables that makes all of them facts."""
        binding = binding or {}
        if not atoms:
            yield dict(binding)
            return
        # The atom with the fewest facts to try comes first.
        candidates = {atom: self._candidates(atom, binding) for atom in atoms}
        atom = min(atoms, key=lambda a: len(candidates[a]))
        rest = [other for other in atoms if other != atom]
        for fact in candidates[atom]:
            extended = _unified(atom, fact, binding, allowed)
            if extended is not None:
                yield from self.joined(rest, allowed, extended)

    def _candidates(self, atom: Atom, binding: Mapping[str, str]) -> list[Atom]:
        lists = [self._by_predicate.get(atom[0], [])]
        for place, term in enumerate(atom[1:], 1):
            value = binding.get(term, "" if term.startswith("?") else term)
            if value:
                lists.append(self._by_object.get((atom[0], place, value), []))
        return min(lists, key=len)


def _unified(
    atom: Atom, fact: Atom, binding: Mapping[str, str], allowed: Mapping[str, set[str]]
) -> dict[str, str] | None:
    """The binding extended so that the atom is the fact; None if that is impossible."""
    extended = dict(binding)
    for term, value in zip(atom[1:], fact[1:], strict=True):
        if not term.startswith("?"):
            if term != value:
                return None
        elif extended.setdefault(term, value) != value or value not in allowed[term]:
            return None
    return extended


def _completed(part: dict[str, str], allowed: Mapping[str, set[str]]) -> Iterator[dict[str, str]]:
    """The binding with every choice of objects for the parameters that it lacks."""
    free = [name for name in allowed if name not in part]
    for values in product(*(allowed[name] for name in free)):
        yield {**part, **dict(zip(free, values, strict=True))}


@lru_cache(maxsize=64)
def _grounded(key: _Key) -> Ground:
    return Ground(key.domain, dict(key.objects), key.static)


class _Key(NamedTuple):
    """Key of problems with the same actions, hashed by the identity of the domain."""

    domain: Domain
    objects: tuple[tuple[str, Types], ...]
    static: frozenset[Atom]

    def __hash__(self) -> int:
        return hash((id(self.domain), self.objects, self.static))


def ground(problem: Problem) -> Ground:
    """Ground a problem's actions; problems with the same objects and static facts share the work.

    Raises:
        UsageError: if there are too many actions.
    """
    moving = changing(problem.domain)
    static = frozenset(atom for atom in problem.init if atom[0] not in moving)
    return _grounded(_Key(problem.domain, tuple(problem.objects.items()), static))
