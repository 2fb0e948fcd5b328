"""Blocksworld: build towers of blocks with one hand.

The domain of four actions, in the words of PlanBench, or in its other names for the same (Valmeekam et al.,
NeurIPS 2023; github.com/karthikv792/LLMs-Planning).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv

TABLE, HAND = "table", "hand"
EXACT: Final = 20_000
"""Most states that the oracle searches for a shortest plan."""
COLOURS: Final = (
    *("red", "blue", "orange", "yellow", "white", "magenta", "black", "cyan", "green"),
    *("violet", "silver", "gold"),
)

Places: TypeAlias = dict[str, str]
"""For each block the block below it, or the table or the hand."""
Atom: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Words:
    """What facts, actions and blocks are called.

    Attributes:
        facts: The words for each kind of fact, with ``{}`` for its blocks. Default: as in PDDL.
        actions: The same for actions.
        blocks: The names of the first blocks.
        other: The name of any other block.
        symbols: Names of facts by which they are sorted.
    """

    facts: Mapping[str, str] = field(default_factory=dict)
    actions: Mapping[str, str] = field(default_factory=dict)
    blocks: Mapping[str, str] = field(default_factory=dict)
    other: str = "{}"
    symbols: Mapping[str, str] = field(default_factory=dict)

    def of(self, atom: Atom) -> str:
        """Return the words for a fact or an action."""
        blocks = [self.blocks.get(block, self.other.format(block)) for block in atom[1:]]
        template = self.facts.get(atom[0]) or self.actions.get(atom[0])
        return template.format(*blocks) if template else " ".join([atom[0], *blocks])

    def list(self, facts: Sequence[Atom]) -> str:
        """Return the words for facts, sorted by name."""
        ordered = sorted(facts, key=lambda fact: " ".join((self.symbols.get(fact[0], fact[0]), *fact[1:])))
        *most, last = map(self.of, ordered)
        return f"{', '.join(most)} and {last}" if most else last


PLAIN = Words(
    {
        "clear": "the {} is clear",
        "ontable": "the {} is on the table",
        "handempty": "the hand is empty",
        "holding": "the hand is currently holding {}",
        "on": "the {} is on top of the {}",
    },
    {
        "pick-up": "pick up the {}",
        "put-down": "put down the {}",
        "stack": "stack the {} on top of the {}",
        "unstack": "unstack the {} from on top of the {}",
    },
    {chr(ord("a") + i): f"{colour} block" for i, colour in enumerate(COLOURS)},
    "block {}",
)
MYSTERY = Words(
    {
        "clear": "province {}",
        "ontable": "planet {}",
        "handempty": "harmony",
        "holding": "pain {}",
        "on": "{} craves {}",
    },
    {
        "pick-up": "attack {}",
        "put-down": "succumb {}",
        "stack": "overcome {} from {}",
        "unstack": "feast {} from {}",
    },
    other="object {}",
    symbols={
        **{"clear": "province", "ontable": "planet", "handempty": "harmony", "holding": "pain"},
        "on": "craves",
    },
)
WORDS: Final = {"plain": PLAIN, "mystery": MYSTERY, "pddl": Words()}


class Blocksworld(TextEnv):
    """Build towers of blocks with one hand.

    The observation lists all true facts. Reward 1 when every block is on the block that the task says, which
    ends the episode, otherwise 0. Start and goal are drawn at each reset.

    Args:
        blocks: How many.
        words: ``"plain"``, PlanBench's words; ``"mystery"``, its other names for the same; or ``"pddl"``.
        max_steps: Step limit of an episode.
        render_mode: ``"ansi"`` or none.

    Attributes:
        places: For each block the block below it, or the table or the hand.
        goal: For each block that must be on another one, that other one.

    Raises:
        UsageError: if an option is out of range.
    """

    offers = ("events", "raw")
    places: Places
    goal: Places

    def __init__(
        self,
        *,
        blocks: int = 4,
        words: Literal["plain", "mystery", "pddl"] = "plain",
        max_steps: int = 100,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        if blocks < 2:
            raise UsageError(f"blocks must be at least 2, not {blocks}.")
        if words not in WORDS:
            raise UsageError(f"words must be {' or '.join(WORDS)}, not {words!r}.")
        self.names = blocks_named(blocks)
        self.words = WORDS[words]

    def oracle(self) -> tuple[str, ...]:
        """Return the actions of a plan to the goal: a shortest one if a search soon finds it."""
        plan = shortest(self.places, self.goal, EXACT) or by_the_table(self.places, self.goal)
        return tuple(map(self.words.of, plan))

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Blocksworld has no reset option {next(iter(options))!r}.")
        self.places = towers(self.task_random, self.names)
        self.goal = self.places
        while solved(self.places, self.goal):
            drawn = towers(self.task_random, self.names)
            self.goal = {block: below for block, below in drawn.items() if below != TABLE}
        wanted = self.words.list([("on", *pair) for pair in self.goal.items()])
        self.task = f"reach a state in which {wanted}"
        return self._outcome()

    def _move(self, action: str) -> Outcome:
        self.places = self._after[action]
        return self._outcome()._replace(event=f"You {action}.")

    def _raw(self) -> tuple[str, ...]:
        return tuple(self.places.values())

    def _place(self, raw: Any) -> Outcome:
        self.places = dict(zip(self.names, raw, strict=True))
        return self._outcome()

    def _outcome(self) -> Outcome:
        text = f"Now {self.words.list(facts(self.places))}."
        self._after = {self.words.of(atom): after for atom, after in moves(self.places)}
        done = solved(self.places, self.goal)
        return Outcome(text, tuple(self._after), float(done), terminated=done, success=done)


def blocks_named(n: int) -> list[str]:
    """Return the names of n blocks."""
    return [chr(ord("a") + i) if i < 26 else f"b{i}" for i in range(n)]


def towers(rng: np.random.Generator, names: Sequence[str]) -> Places:
    """Put blocks in random order, each on the table or on one of the towers so far."""
    places: Places = dict.fromkeys(names, TABLE)
    tops: list[str] = []
    for i in rng.permutation(len(names)):
        tower = int(rng.integers(len(tops) + 1))
        if tower == len(tops):
            tops.append(names[i])
        else:
            places[names[i]], tops[tower] = tops[tower], names[i]
    return places


def solved(places: Places, goal: Places) -> bool:
    """Return whether each block of the goal is on the block where it belongs."""
    return goal.items() <= places.items()


def facts(places: Places) -> list[Atom]:
    """Return all true facts."""
    held = HAND in places.values()
    true: list[Atom] = [("clear", block) for block in _clear(places)] + ([] if held else [("handempty",)])
    for block, below in places.items():
        true.append({TABLE: ("ontable", block), HAND: ("holding", block)}.get(below, ("on", block, below)))
    return true


def moves(places: Places) -> Iterator[tuple[Atom, Places]]:
    """Yield the actions that apply, in the order of the domain and of the blocks, with what is then where."""
    clear = _clear(places)
    if held := next((block for block, below in places.items() if below == HAND), None):
        yield ("put-down", held), places | {held: TABLE}
        yield from (((("stack", held, block)), places | {held: block}) for block in clear)
        return
    lifted = [(block, places[block], places | {block: HAND}) for block in clear]
    yield from ((("pick-up", block), after) for block, below, after in lifted if below == TABLE)
    yield from ((("unstack", block, below), after) for block, below, after in lifted if below != TABLE)


def _clear(places: Places) -> list[str]:
    covered = set(places.values())
    return [block for block, below in places.items() if block not in covered and below != HAND]


def shortest(start: Places, goal: Places, states: int) -> list[Atom]:
    """Return a shortest plan by breadth-first search; empty if there was none among so many states."""
    came: dict[tuple[str, ...], list[Atom]] = {tuple(start.values()): []}
    for here in (queue := [start]):
        plan = came[tuple(here.values())]
        if solved(here, goal):
            return plan
        for atom, after in moves(here):
            if (key := tuple(after.values())) not in came:
                came[key] = [*plan, atom]
                queue.append(after)
        if len(came) > states:
            break
    return []


def by_the_table(places: Places, goal: Places) -> list[Atom]:
    """Return a plan that first puts every block on the table that is not where it belongs."""
    plan: list[Atom] = []
    while not solved(places, goal):
        atom, places = min(moves(places), key=lambda move: _rank(move[0], places, goal))
        plan.append(atom)
    return plan


def _rank(atom: Atom, places: Places, goal: Places) -> int:
    """Rank an action: 0 builds a tower of the goal, 1 takes others apart, 2 is neither."""

    def belongs(block: str) -> bool:
        below = goal.get(block, TABLE)
        return places[block] == below and (below == TABLE or belongs(below))

    name, block = atom[:2]
    wanted = goal.get(block, TABLE)
    ready = wanted != TABLE and wanted in _clear(places) and belongs(wanted)
    if name == "put-down":
        return 1
    if name == "stack":
        return 0 if ready and atom[2] == wanted else 2
    return 2 if belongs(block) else 0 if ready else 1 if name == "unstack" else 2
