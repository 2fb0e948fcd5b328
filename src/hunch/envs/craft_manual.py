"""``scripted:recipes``: reads the manual of the craft world, and states the inputs and outputs of a skill.

Dials: ``error``, the share of lines that give another entry of the manual; ``refusal``, the share of answers
that decline.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hunch.core import UsageError
from hunch.lm.backends.sampling import sample_rng
from hunch.lm.backends.scripted import REFUSAL, RuleWriter
from hunch.lm.rules import writer


@dataclass(frozen=True)
class Recipe:
    """An action in the manual.

    Attributes:
        near: What must be nearby.
        holds: What must be held and is kept.
        feels: The need that must be present.
        uses: What is used up, with numbers.
        gives: What is held afterwards; empty for nothing.
        puts: What is at the place afterwards; empty for nothing.
    """

    near: tuple[str, ...] = ()
    holds: str = ""
    feels: str = ""
    uses: tuple[tuple[str, int], ...] = ()
    gives: str = ""
    puts: str = ""


def sources(manual: str) -> tuple[str, ...]:
    """Return what can be found, according to the manual."""
    match = re.search(r"^There are (.*) in the world\.$", manual, re.MULTILINE)
    return tuple(match[1].split(", ")) if match else ()


def recipes(manual: str) -> dict[str, Recipe]:
    """Return the recipe of each action in the manual."""
    lines = re.findall(r"^To ([^,\n]+), (.*); (.*)\.$", manual, re.MULTILINE)
    return {action: _recipe(takes, brings) for action, takes, brings in lines}


def _recipe(takes: str, brings: str) -> Recipe:
    parts = takes.split(", ")
    said = {verb: part.removeprefix(verb) for verb in _VERBS for part in parts if part.startswith(verb)}
    feels = next((p.removeprefix("be ") for p in parts if p.startswith("be ") and "be near" not in p), "")
    uses = re.findall(r"(\d+) ([a-z ]+?)(?= and |$)", said.get("use ", ""))
    got, put = re.match(r"you get 1 (.*)", brings), re.match(r"(.*) then stands there", brings)
    return Recipe(
        near=tuple(said["be near "].split(" and ")) if "be near " in said else (),
        holds=said.get("hold 1 ", ""),
        feels=feels,
        uses=tuple((thing, int(n)) for n, thing in uses),
        gives=got[1] if got else "",
        puts=put[1] if put else "",
    )


_VERBS = ("be near ", "hold 1 ", "use ")


@writer("recipes", dials=("error", "refusal"))
class Reader(RuleWriter):
    """Writes the six lines of a skill's entry in a skill graph.

    Raises:
        UsageError: if a dial is not from 0 to 1, or they sum to more than 1.
    """

    def __init__(self, error: float = 0.0, refusal: float = 0.0) -> None:
        if not all(0 <= share <= 1 for share in (error, refusal)):
            raise UsageError("The dials of scripted:recipes must be from 0 to 1.")
        self.error, self.refusal = error, refusal
        self.name = "scripted:recipes"
        self.revision = f"1:{error},{refusal}"

    def answer(self, prompt: str, sample: int) -> str:
        """Return entries for the requested skills."""
        rng = sample_rng(prompt, "recipes", sample)
        if rng.random() < self.refusal:
            return REFUSAL
        skill = re.search(r"^Skill: (.*)$", prompt, re.MULTILINE)
        lines = entry(skill[1] if skill else "", prompt)
        if lines is None:
            return "unknown"
        other = {
            name: text if rng.random() >= self.error else _other(name, text, prompt, rng)
            for name, text in lines.items()
        }
        return "\n".join(f"{name}: {text}" for name, text in other.items())


def entry(skill: str, manual: str) -> dict[str, str] | None:
    """Return the lines of a skill's entry; None if the manual does not mention it."""
    source = skill.removeprefix("find ")
    if source != skill:
        known = source in sources(manual)
        return _lines(brings=source, moves="yes") if known else None
    recipe = recipes(manual).get(skill)
    if recipe is None:
        return None
    return _lines(
        consumes=", ".join(f"{n} {thing}" for thing, n in recipe.uses),
        requires=f"1 {recipe.holds}" if recipe.holds else "",
        nearby=", ".join(recipe.near),
        obtains=f"1 {recipe.gives}" if recipe.gives else "",
        brings=recipe.puts,
    )


def _lines(**values: str) -> dict[str, str]:
    names = ("consumes", "requires", "nearby", "obtains", "brings", "moves")
    return {name: values.get(name) or ("no" if name == "moves" else "-") for name in names}


def _other(name: str, text: str, manual: str, rng: np.random.Generator) -> str:
    """Return another possible value of a line."""
    if name == "moves":
        return "no" if text == "yes" else "yes"
    known = recipes(manual).values()
    places = (*sources(manual), *(recipe.puts for recipe in known if recipe.puts))
    things = [f"1 {recipe.gives}" for recipe in known if recipe.gives]
    kind: Sequence[str] = places if name in ("nearby", "brings") else things
    others = [other for other in ("-", *kind) if other != text]
    return others[int(rng.integers(len(others)))]
