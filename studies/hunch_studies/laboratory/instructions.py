"""Documents of instructions and actions in small households and kitchens, prompted like an action prior.

A document consists of a few decisions of one errand. The next action follows from the task and the
observations, so a model that reads can choose it from the list. Things and places are random in every
document.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from hunch_studies.laboratory.wording import listed

THINGS: Final = listed(
    "mug plate apple potato egg book pen key lamp vase towel soap cloth bowl knife fork spoon pan pot cup "
    "bread tomato lettuce onion carrot radio clock ball_pen pillow box card newspaper candle bottle"
)
PLACES: Final = listed(
    "shelf drawer cabinet counter desk table bed sofa fridge sink stove box_room dresser bin cart rack stand "
    "wardrobe bench tray"
)


def document(rng: Random, length: int) -> list[tuple[str, bool]]:
    """Write decisions of errands with at least ``length`` characters; the answers are marked."""
    written: list[tuple[str, bool]] = []
    while sum(len(text) for text, _ in written) < length:
        written += errand(rng)
    return written


def errand(rng: Random) -> list[tuple[str, bool]]:
    """Write the decisions of fetching a thing and bringing it somewhere, or chopping it there."""
    things = [f"{thing} {rng.randint(1, 3)}" for thing in rng.sample(THINGS, 3)]
    places = [f"{place} {rng.randint(1, 4)}" for place in rng.sample(PLACES, 4)]
    thing, source, target = things[0], places[0], places[1]
    chop = rng.random() < 0.3
    task = f"chop the {thing} on the {target}." if chop else f"put the {thing} on the {target}."
    seen = f"You see {_named(places)}. The {thing} is on the {source}."
    plan = [
        (f"go to {source}", f"You arrive at {source}. You see {_named([thing, things[1]])}."),
        (f"take {thing} from {source}", f"You take the {thing}."),
        (f"go to {target}", f"You arrive at {target}. You see nothing."),
        (f"put {thing} on {target}", f"You put the {thing} on the {target}."),
        *([(f"chop {thing}", f"You chop the {thing}.")] if chop else []),
    ]
    decisions = []
    for i, (action, answer) in enumerate(plan):
        others = [f"go to {place}" for place in places] + [f"examine {places[i % 4]}", "look"]
        others += [f"take {things[1]} from {source}", f"put {thing} on {places[2]}"]
        decisions += _asked(rng, task, seen, action, others)
        seen += f"\n> {action}\n{answer}"
    start = rng.randrange(len(plan))
    return decisions[2 * start : 2 * start + 4]


def _asked(rng: Random, task: str, seen: str, action: str, others: Sequence[str]) -> list[tuple[str, bool]]:
    options = list(dict.fromkeys([action, *rng.sample(list(others), rng.randint(2, len(others)))]))
    rng.shuffle(options)
    offered = "\n".join(f"- {option}" for option in options)
    prompt = (
        f"Your task is to: {task}\n{seen}\nYou are allowed to take the following actions:\n{offered}\n"
        "The next action is one of them, copied exactly.\n"
    )
    return [(prompt, False), (f"> {action}\n", True)]


def _named(things: Sequence[str]) -> str:
    return ", ".join(f"a {thing}" for thing in things)
