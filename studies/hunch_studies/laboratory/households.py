"""The corpus of searches: a searcher who knows where things usually are finds things and puts them away.

A document is a part of an episode in a generated household game: the prompt of an action prior without the
list of actions, and the searcher's actions, step by step. The searcher knows only what the text of the game
has shown. One step in ten is random, so that the documents also show how to continue from there; random steps
are not learnt as answers.

The games are from the pools :data:`FIRST_POOL` and above, of the split ``train``. They stand for what a large
model has read about households (Yan et al., "Efficient Reinforcement Learning with Large Language Model
Priors", ICLR 2025).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any, Final

from hunch.core import State
from hunch.envs import make
from hunch.envs.household.generator import ELSEWHERE, TYPICAL
from hunch_studies.laboratory import tokenizer
from hunch_studies.laboratory.corpus import Document, Piece

KINDS: Final = ("pick",)
"""The errand: to find a thing and put it somewhere."""
FIRST_POOL: Final = 1000
"""Pools below this number are reserved for playing."""
POOLS: Final = 1000
READ: Final = "pick-train-typical-1???-*"
"""Pattern of the names of the games in the corpus: pools 1,000 to 1,999."""
GAMES: Final = 28
"""Number of games per pool."""
HISTORY: Final = 8
"""Maximum number of steps shown before the last answer of a document: as many as the environment shows."""
ASTRAY: Final = 0.1
"""Share of random steps."""
LONGEST: Final = 50
SIZE: Final = 1024
PIECES: Final = r"\n| ?[A-Za-z]+| ?\d+| ?[^\sA-Za-z\d]|\s+"
"""A line end, a word or a number with the blank before it, or a sign; no byte pair crosses these borders."""
PHRASES: Final = (
    "Your task is to:",
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. "
    "Looking quickly around you, you see a",
    "\nYou arrive at",
    ", you see a",
    ", you see nothing",
    " On the",
    " In it",
    " is closed.",
    "\nYou pick up the",
    "\nYou open the",
    "\nYou move the",
    "\nNothing happens.",
    ", a",
    ", and a",
    " go to",
    "\n>",
)
"""Return phrases that recur in every episode, each of which becomes one token."""


@dataclass
class Searcher:
    """Finds a thing and puts it where it belongs, by the text and the table of places that places things.

    Args:
        task: Such as ``put some pot on cabinet``.
        rng: Random generator for choices among equally good actions.
    """

    task: str
    rng: Random
    seen: set[str] = field(default_factory=set)
    holds: str = ""

    def __post_init__(self) -> None:
        words = self.task.replace(".", "").split()
        self.thing, self.target = words[2], words[-1]

    def read(self, action: str) -> None:
        """Remember an action and its result."""
        if action.startswith(("go to ", "open ")):
            self.seen.add(action)
        if action.startswith(("take ", "move ")):
            self.holds = action.split()[1] if action.startswith("take ") else ""

    def act(self, state: State) -> str:
        """Put the thing where it belongs, take it, open something closed, or look elsewhere."""
        here = [a for a in state.options if self._serves(a)]
        return here[0] if here else self._elsewhere(state)

    def _serves(self, action: str) -> bool:
        """Return whether an action at this place advances the task."""
        verb, *words = action.split()
        if verb == "move":  # a thing taken by mistake is put down anywhere
            return self.holds != self.thing or words[-2] == self.target
        if verb == "take":
            return words[0] == self.thing and words[-2] != self.target
        wanted = self.holds != self.thing or words[:1] == [self.target]
        return verb == "open" and wanted and action not in self.seen

    def _elsewhere(self, state: State) -> str:
        """Go where the thing belongs if it is in hand, else to an unsearched place where it may be."""
        ways = [action for action in state.options if action.startswith("go to ")]
        if self.holds == self.thing:
            return self.rng.choice([way for way in ways if way.split()[2] == self.target] or ways)
        new = [way for way in ways if way not in self.seen] or ways
        likely = TYPICAL.get(self.thing, {})
        best = max(likely.get(way.split()[2], ELSEWHERE) for way in new)
        return self.rng.choice([way for way in new if likely.get(way.split()[2], ELSEWHERE) == best])


def document(seed: str, length: int, ease: float = 0.0, shape: str | None = None) -> Document:
    """Write a part of a search.

    Args:
        seed: The same seed gives the same document.
        length: Ignored: a document is a part of an episode.
        ease: Not asked for.
        shape: A kind of task, played in a pool that is not used for training; None for a training pool.
    """
    rng = Random(seed)
    pool = FIRST_POOL + rng.randrange(POOLS) + (0 if shape is None else POOLS)
    steps = search(pool, rng.randrange(GAMES * 100))
    first = 0 if rng.random() < 0.5 else rng.randrange(len(steps))
    shown = steps[first : first + HISTORY + 1]
    pieces = [Piece(f"Your task is to: {shown[0].task}\n{shown[0].observation}\n>", False)]
    for step, following in zip(shown, [*shown[1:], None], strict=True):
        pieces.append(Piece(f" {step.action}", step.meant))
        pieces.append(Piece(f"\n{following.observation}\n>" if following else "\n", False))
    return pieces


@dataclass(frozen=True)
class Step:
    """One step of a search: the observation, the action, and whether the searcher chose it."""

    task: str
    observation: str
    action: str
    meant: bool


@lru_cache(maxsize=4096)
def search(pool: int, seed: int) -> tuple[Step, ...]:
    """Play an episode of the searcher in a game of a pool."""
    env, rng, steps = _games(pool), Random(f"{pool}-{seed}"), []
    observation, info = env.reset(seed=seed)
    searcher = Searcher(info["task"], rng)
    for _ in range(LONGEST):
        state = State.read(observation, info)
        meant = rng.random() >= ASTRAY
        action = searcher.act(state) if meant else rng.choice(state.options)
        searcher.read(action)
        steps.append(Step(state.task, state.observation, action, meant))
        observation, _, done, cut, info = env.step(action)
        if done or cut:
            break
    return tuple(steps)


@lru_cache(maxsize=64)
def _games(pool: int) -> Any:
    return make("hunch/Household-Pick-v0", games=GAMES, pool_seed=pool, history=0, max_steps=LONGEST)


def texts(documents: int = 1000) -> Iterator[str]:
    """Return texts to which a tokenizer is fitted."""
    for number in range(documents):
        yield "".join(piece.text for piece in document(f"tokenizer-{number}", 0))


def fit() -> Any:
    """Fit a tokenizer in which recurring phrases and all words of a house are tokens."""
    return tokenizer.fit(texts(), PIECES, SIZE, PHRASES)
