"""The corpus of walkthroughs: an oracle's solutions of BabyAI levels, in words.

A document is one decision: the prompt of an action prior, and the action. Some targets never occur in a
mission, so that a mission about them is a new combination of words; they are still present in the rooms.
Layouts are those of seeds up to :data:`EPISODES`.

Levels are those of Chevalier-Boisvert et al., BabyAI, ICLR 2019, in the words of Carta et al., ICML 2023.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from random import Random
from typing import Any, Final

from hunch.core import State
from hunch.envs import make
from hunch_studies.laboratory import tokenizer
from hunch_studies.laboratory.corpus import Document, Piece
from hunch_studies.worlds.babyai.words import ACTIONS

LEVELS: Final = ("GoToObj", "GoToLocal", "PickupDist")
HELD_OUT: Final = ("red ball", "green key", "purple box")
"""Targets that do not occur in missions."""
EPISODES: Final = 4000
"""Number of layouts per level."""
MOST_ASTRAY: Final = 4
"""Maximum number of random steps before the walkthrough, so that rooms are seen from everywhere."""
SIZE: Final = 448
PIECES: Final = r"\n| ?[A-Za-z]+| ?[^\sA-Za-z]|\s+"
"""A line end, a word with the preceding blank, or punctuation; byte pairs do not cross these."""


def phrases() -> list[str]:
    """Return phrases that recur in every prompt, each of which becomes one token."""
    ways = product(("", " and"), range(1, 8), ("left", "right", "forward"))
    return [
        *(
            "Your task is to:",
            "\nYou see a",
            "\nYou carry a",
            "\nYou are allowed to take the following actions:",
        ),
        *(f"\n- {action}" for action in ACTIONS),
        *(f"{joint} {n} step{'s' if n > 1 else ''} {way}" for joint, n, way in ways),
        "\nThe next action is one of them, copied exactly.\n>",
    ]


def document(seed: str, length: int, ease: float = 0.0, shape: str | None = None) -> Document:
    """Return one decision of the walkthrough of a seed.

    Args:
        seed: The same seed gives the same document.
        length: Ignored: a document is one decision.
        ease: Ignored.
        shape: A level, with a layout outside the training seeds; None for any level.
    """
    rng = Random(seed)
    while True:
        level = shape or rng.choice(LEVELS)
        number = rng.randrange(EPISODES) + (0 if shape is None else EPISODES)
        if found := walk(level, number):
            prompt, action = rng.choice(found)
            return [Piece(prompt, False), Piece(f" {action}", True), Piece("\n", False)]


@cache
def walk(level: str, number: int) -> tuple[tuple[str, str], ...]:
    """Return prompts and actions of a solution; empty if the target is held out, or out of reach."""
    env, rng = _level(level), Random(f"{level}-{number}")
    observation, info = env.reset(seed=number)
    if any(target in info["task"] for target in HELD_OUT):
        return ()
    for _ in range(rng.randint(0, MOST_ASTRAY)):
        observation, _, done, cut, info = env.step(rng.choice(("turn left", "turn right", "go forward")))
        if done or cut:
            return ()
    found = []
    for action in env.unwrapped.oracle() or ():
        found.append((prompt(State.read(observation, info)), action))
        observation, _, _, _, info = env.step(action)
    return tuple(found)


@cache
def _level(name: str) -> Any:
    return make(f"hunch/BabyAI-{name}-v0", history=0, max_steps=100)


def prompt(state: State) -> str:
    """Return the prompt for an action, in the format of action priors and policies."""
    offered = "\n".join(f"- {action}" for action in state.options)
    return (
        f"Your task is to: {state.task}\n{state.text()}\n"
        f"You are allowed to take the following actions:\n{offered}\n"
        "The next action is one of them, copied exactly.\n>"
    )


def texts(documents: int = 2000) -> Iterator[str]:
    """Return texts to which a tokenizer is fitted."""
    for number in range(documents):
        yield "".join(piece.text for piece in document(f"tokenizer-{number}", 0))


def fit() -> Any:
    """Fit a tokenizer in which most recurring phrases are tokens."""
    return tokenizer.fit(texts(), PIECES, SIZE, phrases())
