"""Parses PlanBench's texts: problems from prompts, and plans from answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from hunch.core import UsageError
from hunch_studies.worlds.strips.pddl import (
    ANYTHING,
    Atom,
    Condition,
    Domain,
    Problem,
    read_domain,
    read_problem,
)
from hunch_studies.worlds.strips.problems import domain
from hunch_studies.worlds.strips.wording import BLOCKS, FREIGHT, MYSTERY_BLOCKS, MYSTERY_FREIGHT, Wording

_INIT = re.compile(r"As initial conditions I have that, (.*)")
_GOAL = re.compile(r"My goal is to have that (.*)")
_ITEMS = re.compile(r", and |, | and ")
_LISTED = re.compile(r"\(([^()]*)\)")
_KINDS = {"p": "obj", "t": "truck", "a": "airplane", "l": "location", "c": "city"}


def _blocks(clear: str, ontable: str, handempty: str, holding: str, on: str) -> dict[str, str]:
    return {"clear": clear, "ontable": ontable, "handempty": handempty, "holding": holding, "on": on}


def _moves(pick_up: str, put_down: str, stack: str, unstack: str) -> dict[str, str]:
    return {"pick-up": pick_up, "put-down": put_down, "stack": stack, "unstack": unstack}


@dataclass(frozen=True, eq=False)
class Dialect:
    r"""One wording of a domain in PlanBench.

    Attributes:
        domain: Name of our domain with the same rules.
        facts: A pattern for each predicate, with ``{}`` for its objects.
        verbs: A pattern for each action, by which a line of a plan is recognised.
        objects: Patterns of the words for objects, each with its name in PDDL; ``\1`` is what was captured.
        symbols: Our actions by the names that recorded plans in PDDL have for them.
    """

    domain: str
    facts: Mapping[str, str]
    verbs: Mapping[str, str]
    objects: Sequence[tuple[str, str]]
    symbols: Mapping[str, str]

    def problem(self, init: str, goal: str) -> Problem | None:
        """Return the problem in a prompt; None if a fact is not in this wording."""
        facts = [self._fact(item) for item in _ITEMS.split(init)]
        wanted = [self._fact(item) for item in _ITEMS.split(goal)]
        known = [fact for fact in facts if fact is not None]
        goals = [fact for fact in wanted if fact is not None]
        if len(known) + len(goals) < len(facts) + len(wanted):
            return None
        names = sorted({name for fact in (*known, *goals) for name in fact[1:]})
        if self.domain == "logistics":
            known += [(_KINDS[name[0]], name) for name in names if name[0] in _KINDS]
        objects = dict.fromkeys(names, ANYTHING)
        return Problem(domain(self.domain), objects, frozenset(known), Condition(tuple(goals)))

    def _fact(self, words: str) -> Atom | None:
        for predicate, pattern in self._patterns.items():
            if match := pattern.fullmatch(words.strip()):
                names = [self.name(group) for group in match.groups()]
                if all(name is not None for name in names):
                    return (predicate, *(name for name in names if name is not None))
        return None

    @property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        return _compiled(self)

    def name(self, words: str) -> str | None:
        """Return the PDDL name of an object, which may already be that name; None if it is not an object."""
        for pattern, name in self.objects:
            if match := re.fullmatch(pattern, words):
                return match.expand(name)
        return None

    def action(self, atom: Atom) -> Atom:
        """Return a recorded action with the names of our domain; unknown actions get the prefix ``?``."""
        name = self.symbols.get(atom[0], f"?{atom[0]}")
        return (name, *(self.name(term) or term for term in atom[1:]))

    def plan(self, text: str) -> list[Atom]:
        """Return the plan in a text: for each line with the verb of an action, that action and its objects.

        If the text has ``[PLAN]``, everything before the last one and after ``[PLAN END]`` is ignored.
        """
        body = text.lower().rpartition("[plan]")[2].partition("[plan end]")[0]
        return [atom for line in body.splitlines() if (atom := self._line(line)) is not None]

    def _line(self, line: str) -> Atom | None:
        verb = next((action for action, pattern in self.verbs.items() if re.search(pattern, line)), None)
        words = _spotted(self)
        names = [name for match in words.finditer(line) if (name := self.name(match[0])) is not None]
        if verb is None or not names:
            return None
        if self.domain == "logistics" and verb in ("load", "unload"):
            verb += "-airplane" if any(name.startswith("a") for name in names) else "-truck"
        return (verb, *names)


@cache
def _compiled(dialect: Dialect) -> dict[str, re.Pattern[str]]:
    return {
        predicate: re.compile(re.escape(text).replace(r"\{\}", "(.+?)"))
        for predicate, text in dialect.facts.items()
    }


@cache
def _spotted(dialect: Dialect) -> re.Pattern[str]:
    """The pattern that finds objects in a line, the longest words first."""
    return re.compile("|".join(rf"\b{pattern}\b" for pattern, _ in dialect.objects))


def _told(wording: Wording) -> dict[str, str]:
    return {name: text for name, text in wording.predicates.items() if text}


_AS_THEY_ARE = {name: name for name in BLOCKS.actions}
_COLOURS = [(words, name) for name, words in BLOCKS.objects.items()]
_BLOCKS = (
    *_COLOURS,
    *[(words.removesuffix(" block"), name) for words, name in _COLOURS],
    (r"(?:block )?([a-z]|b\d+)", r"\1"),
)
_LETTERED = ((r"object[ _]?([a-z]|b?\d+)", r"\1"), (r"([a-z]|b\d+)", r"\1"))
_NUMBERED = ((r"object_(\d+)", r"o\1"), (r"(o\d+)", r"\1"))

PLAIN = Dialect(
    "blocksworld",
    _told(BLOCKS),
    _moves(r"pick(ed|ing)?[ -]?up", r"put(ting)?[ -]?down", r"(?<!un)stack", r"unstack"),
    _BLOCKS,
    _AS_THEY_ARE,
)
MYSTERY = Dialect(
    "blocksworld",
    _told(MYSTERY_BLOCKS),
    _moves("attack", "succumb", "overcome", "feast"),
    _LETTERED,
    {other: plain for plain, other in MYSTERY_BLOCKS.symbols.items()},
)
_RANDOM_MOVES = _moves("1jpkithdyjmlikck", "9big8ruzarkkquyu", "2ijg9q8swj2shjel", "xptxjrdkbi3pqsqr")
RANDOM = Dialect(
    "blocksworld",
    _blocks(
        *("aqcjuuehivl8auwt {}", "51nbwlachmfartjn {}", "3covmuy4yrjthijd"),
        *("gk5asm3f7u1fekpj {}", "{} 4dmf1cmtyxgsp94g {}"),
    ),
    _RANDOM_MOVES,
    _LETTERED,
    {**_AS_THEY_ARE, **{other: plain for plain, other in _RANDOM_MOVES.items()}},
)
_OBFUSCATED_MOVES = _moves("u64y1a9apusmslxb", "kip9uw781pv62umn", "j4gv801gnu2it0yj", "wio5amhq7814n006")
OBFUSCATED = Dialect(
    "blocksworld",
    _blocks(
        *("tv30k33pzoulql6w {}", "af9tse23ljclsqad {}", "cql4o62p1yeke3ok"),
        *("a46zhwykn6jvbabk {}", "b6e9q4r60gagvdcn {} {}"),
    ),
    _OBFUSCATED_MOVES,
    _NUMBERED,
    {other: plain for plain, other in _OBFUSCATED_MOVES.items()},
)
LOGISTICS = Dialect(
    "logistics",
    _told(FREIGHT),
    {"unload": "unload", "load": "load", "drive-truck": "drive", "fly-airplane": r"\bfly"},
    (
        *[(rf"{word}_(\d+)", rf"{word[0]}\1") for word in ("package", "truck", "airplane", "city")],
        (r"location_(\d+)_(\d+)", r"l\1-\2"),
        (r"([ptac]\d+|l\d+-\d+)", r"\1"),
    ),
    {name: name for name in FREIGHT.actions},
)
DECEPTIVE = Dialect(
    "logistics",
    _told(MYSTERY_FREIGHT),
    {name: MYSTERY_FREIGHT.symbols[name] for name in FREIGHT.actions},
    _NUMBERED,
    {MYSTERY_FREIGHT.symbols[name]: name for name in FREIGHT.actions},
)
DIALECTS = (PLAIN, MYSTERY, RANDOM, OBFUSCATED, LOGISTICS, DECEPTIVE)


@dataclass(frozen=True, eq=False)
class Statement:
    """A problem of a prompt, and its wording; None if it is in PDDL."""

    problem: Problem
    dialect: Dialect | None

    def plan(self, written: str | Iterable[str]) -> list[Atom]:
        """Return the actions in parentheses in a text or lines, with the names of the problem."""
        lines = written.splitlines() if isinstance(written, str) else written
        text = "\n".join(line.partition(";")[0] for line in lines)
        atoms = [tuple(match[1].lower().split()) for match in _LISTED.finditer(text)]
        named = [atom for atom in atoms if atom]
        return named if self.dialect is None else [self.dialect.action(atom) for atom in named]

    def plan_in_words(self, text: str) -> list[Atom]:
        """Return the plan that a model wrote, in PDDL or in words like the problem."""
        return self.plan(text) if self.dialect is None else self.dialect.plan(text)


def read_statement(prompt: str) -> Statement:
    """Read the problem of a prompt; the last one if others are examples.

    Raises:
        UsageError: if there is none, or its wording is unknown.
    """
    head, mark, problem = prompt.rpartition("[QUERY PROBLEM]")
    if mark:
        return _in_pddl(head.rpartition("[DOMAIN]")[2], problem)
    inits, goals = _INIT.findall(prompt), _GOAL.findall(prompt)
    if not inits or not goals:
        raise UsageError("The prompt states no problem: no initial conditions or no goal was found.")
    return _in_words(inits[-1].strip().rstrip("."), goals[-1].strip().rstrip("."))


def read_execution(prompt: str) -> tuple[Statement, list[Atom]]:
    """Read the first state and the actions of a prompt; the last ones if others are examples.

    Returns:
        A problem whose goal is its first state, and the actions.

    Raises:
        UsageError: if there are none, or their wording is unknown.
    """
    inits = _INIT.findall(prompt)
    sequence, end, _ = prompt.rpartition("[ACTION SEQUENCE]\n")[2].partition("[ACTION SEQUENCE END]")
    if not inits or not end:
        raise UsageError("The prompt asks for no resulting state: no beginning or no actions were found.")
    init = inits[-1].strip().rstrip(".")
    statement = _in_words(init, init)
    return statement, statement.plan_in_words(sequence)


@lru_cache(maxsize=8192)
def _in_words(init: str, goal: str) -> Statement:
    for dialect in DIALECTS:
        problem = dialect.problem(init, goal)
        if problem is not None:
            return Statement(problem, dialect)
    raise UsageError(f"The prompt states a problem in an unknown wording: {init[:60]!r}.")


@lru_cache(maxsize=8192)
def _in_pddl(head: str, text: str) -> Statement:
    found = read_problem(_expression(text), _domain(_expression(head)), "The problem in the prompt")
    return Statement(found, None)


@lru_cache(maxsize=64)
def _domain(text: str) -> Domain:
    return read_domain(text, "The domain in the prompt")


def _expression(text: str) -> str:
    """The first parenthesised expression of a text; prompts have a parenthesis too many after some."""
    depth = 0
    start = text.find("(")
    for place in range(max(start, 0), len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return text[start : place + 1]
    raise UsageError("The prompt lacks the expected PDDL.")
