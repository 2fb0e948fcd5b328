"""A game as data, and its file in the ``game.tw-pddl`` format of ALFWorld.

A game file is JSON with the keys ``pddl_domain``, ``grammar``, ``pddl_problem``, ``solvable`` and
``walkthrough``. Only the problem and a few phrases of the grammar are read; nothing in a file is evaluated.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hunch.core import UsageError
from hunch.envs.household.goals import Goal, UnknownGoalError, recognise
from hunch.envs.household.pddl import Tree, atom, expression, parse, typed

SUFFIX = ".tw-pddl"

# Far beyond ALFWorld's own games, of about 40 kB and 300 names: what is larger would only keep us busy.
_MOST_BYTES = 10_000_000
_MOST_CHARACTERS = 1_000_000
_MOST_NAMES = 2_000

Fact = tuple[str, ...]

_PREDICATES = {
    "atlocation": ("agent", "location"),
    "holds": ("agent", "object"),
    "receptacleatlocation": ("receptacle", "location"),
    "objectatlocation": ("object", "location"),
    "receptacletype": ("receptacle", "rtype"),
    "objecttype": ("object", "otype"),
    "cancontain": ("rtype", "otype"),
    "inreceptacle": ("object", "receptacle"),
    "inreceptacleobject": ("object", "object"),
    "openable": ("receptacle",),
    "opened": ("receptacle",),
    **dict.fromkeys(
        [
            "pickupable",
            "isreceptacleobject",
            "cleanable",
            "isclean",
            "heatable",
            "ishot",
            "coolable",
            "iscool",
            "toggleable",
            "istoggled",
            "sliceable",
            "issliced",
        ],
        ("object",),
    ),
}

_TASK = re.compile(r'"Your task is to: ((?:[^"\\]|\\.)*?)\.?"')


@dataclass(frozen=True, slots=True)
class Wording:
    """The differences between the texts of ALFWorld's versions.

    Attributes:
        put_in_on: ``put O in/on R`` (before 0.4) instead of ``move O to R``.
        arrive_at_place: Arrivals name the place, such as ``loc 12`` (before 0.4), instead of the receptacle.
        help: There is a ``help`` command (0.4 and later).
    """

    put_in_on: bool = False
    arrive_at_place: bool = False
    help: bool = True

    @classmethod
    def of(cls, grammar: str) -> Wording:
        """Detect the version from a game's grammar; a grammar without actions means the newest."""
        return cls(
            put_in_on="put {o} in/on {r}" in grammar,
            arrive_at_place="You arrive at {lend.name}" in grammar,
            help=bool(re.search(r"\baction\s+help\b", grammar))
            or not re.search(r"\baction\s+look\b", grammar),
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """A game: its objects, the facts at the start, and the goal.

    Attributes:
        objects: Name and type (agent, location, receptacle, object, rtype, otype) of everything, sorted.
        facts: Facts at the start, each as predicate and arguments in lower case, sorted.
        goal: The goal.
        task: The task in one sentence, without the full stop.
        wording: The version of the texts.
    """

    objects: tuple[tuple[str, str], ...]
    facts: tuple[Fact, ...]
    goal: Goal
    task: str
    wording: Wording = Wording()

    def pddl(self) -> str:
        """Return the problem in PDDL."""
        objects = "\n".join(f"    {name} - {kind}" for name, kind in self.objects)
        facts = "\n".join(f"    ({' '.join(fact)})" for fact in self.facts)
        return (
            f"(define (problem household)\n  (:domain alfred)\n  (:objects\n{objects})\n"
            f"  (:init\n{facts})\n  (:goal {self.goal.pddl()}))\n"
        )


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty one if it holds something else.

    Raises:
        UsageError: if the file cannot be read, is too large, or is not JSON.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"The game file {path} cannot be read: {error.strerror}.") from None
    if len(content) > _MOST_BYTES:
        raise UsageError(f"The game file {path} is damaged: it is larger than {_MOST_BYTES:,} bytes.")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        raise UsageError(f"The game file {path} is damaged: it is not JSON text.") from None
    return data if isinstance(data, dict) else {}


def load(path: Path, keys: tuple[str, ...] = ("pddl_problem", "grammar")) -> dict[str, str]:
    """Return the texts of a game file under these keys.

    Raises:
        UsageError: if the file cannot be read, or a text is missing.
    """
    data = read_json(path)
    for key in keys:
        if not isinstance(data.get(key), str):
            raise UsageError(f"The game file {path} is damaged: it has no text under {key!r}.")
    return {key: data[key] for key in keys}


def read(path: Path) -> Problem:
    """Read the game in a file.

    Raises:
        UnknownGoalError: if the goal is not one of the six known kinds.
        UsageError: if the file cannot be read or is not a playable game; the message has the reason.
    """
    game = load(path)
    try:
        return parse_problem(game["pddl_problem"], game["grammar"])
    except ValueError as error:
        kind = UnknownGoalError if isinstance(error, UnknownGoalError) else UsageError
        raise kind(f"The game file {path} cannot be played by our simulator: {error}.") from None


def contents(problem: Problem, *, domain: str = "", grammar: str = "") -> dict[str, Any]:
    """Return the contents of a game's file.

    Args:
        problem: The game.
        domain: The PDDL domain, which only the real engine needs.
        grammar: The engine's grammar with its ``UNKNOWN GOAL`` in place, which only the real engine needs;
            its version must be that of ``problem.wording``.

    Raises:
        UsageError: if the versions of grammar and problem differ.
    """
    if grammar and Wording.of(grammar) != problem.wording:
        raise UsageError("Grammar and problem are from different versions of ALFWorld.")
    sentence = json.dumps(problem.task)[1:-1]
    return {
        "pddl_domain": domain,
        "grammar": grammar.replace("UNKNOWN GOAL", sentence) or _grammar(problem.wording, sentence),
        "pddl_problem": problem.pddl(),
        "solvable": True,
        "walkthrough": None,
    }


def write(problem: Problem, path: Path, *, domain: str = "", grammar: str = "") -> None:
    """Write a game file with the :func:`contents`; the real engine needs the extension ``.tw-pddl``."""
    path.write_text(json.dumps(contents(problem, domain=domain, grammar=grammar)), encoding="utf-8")


def _grammar(wording: Wording, sentence: str) -> str:
    """The phrases of a grammar that our own reader looks for."""
    phrases = [f'"Your task is to: {sentence}."', "action look"]
    phrases += ["put {o} in/on {r}"] * wording.put_in_on
    phrases += ["You arrive at {lend.name}"] * wording.arrive_at_place
    phrases += ["action help"] * wording.help
    return "\n".join(phrases)


def parse_problem(pddl: str, grammar: str) -> Problem:
    """Read a problem from its PDDL text and the text of its grammar.

    Raises:
        UnknownGoalError: if the goal is not one of the six known kinds.
        ValueError: if a text is malformed; the message has the reason.
    """
    if len(pddl) > _MOST_CHARACTERS:
        raise ValueError(f"its problem is longer than {_MOST_CHARACTERS:,} characters")
    sections: dict[str, list[Tree]] = {}
    for part in parse(pddl)[1:]:
        head, *rest = expression(part)
        sections[str(head)] = rest
    for name in (":objects", ":init", ":goal"):
        if name not in sections:
            raise ValueError(f"it has no section {name}")
    objects = dict(typed(sections[":objects"]))
    if len(objects) > _MOST_NAMES:
        raise ValueError(f"it declares more than {_MOST_NAMES:,} names")
    # (= (distance a b) 5) and the like are costs, which no rule looks at.
    facts = {atom(fact) for fact in sections[":init"] if expression(fact)[0] != "="}
    _check(facts, objects)
    if len(sections[":goal"]) != 1:
        raise ValueError("its goal is not one condition")
    goal = recognise(sections[":goal"][0])
    task = task_in(grammar) or goal.sentence(0)
    return Problem(tuple(sorted(objects.items())), tuple(sorted(facts)), goal, task, Wording.of(grammar))


def task_in(grammar: str) -> str:
    """Return the sentence of the task in a grammar; empty if it has none.

    Raises:
        ValueError: if the sentence is not text.
    """
    match = _TASK.search(grammar)
    task: str = json.loads(f'"{match[1]}"', strict=False) if match else ""
    if re.search("[\ud800-\udfff]", task):
        raise ValueError("the sentence of its task is not text")
    return task


def _check(facts: set[Fact], objects: dict[str, str]) -> None:
    for predicate, *arguments in sorted(facts):
        kinds = _PREDICATES.get(predicate)
        if kinds is None:
            continue
        if len(arguments) != len(kinds):
            raise ValueError(f"({predicate} ...) takes {len(kinds)} names, not {len(arguments)}")
        for name, kind in zip(arguments, kinds, strict=True):
            # Some of the types are named by the domain, so that a problem need not declare them.
            if objects.get(name, kind if kind in ("rtype", "otype") else "") != kind:
                raise ValueError(f"{name} in ({predicate} ...) is not declared as {kind}")
    if sum(fact[0] == "atlocation" for fact in facts) != 1:
        raise ValueError("it does not say where its one agent is")
    placed = [fact[1] for fact in facts if fact[0] == "receptacleatlocation"]
    if len(placed) != len(set(placed)):
        raise ValueError("a receptacle is at two places")
