"""``scripted:critic``: criticises, revises and compares recipes, if the principle is about diets.

A principle that does not name a diet gives it nothing to go by: it then finds fault with a food by chance,
and prefers by chance. Revising without a critique, it changes a food by chance too. In a revision a food
gives way to one that suits the dish, is not in the text, and that the diet allows if the principle is about
diets.

Dials: ``error``, the share of critiques and comparisons that are about another clause or for the other text;
``refusal``, the share of answers that decline; ``malformed``, the share of revisions without their mark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from hunch.core import UsageError
from hunch.lm.backends.sampling import sample_rng
from hunch.lm.backends.scripted import REFUSAL, RuleWriter
from hunch.lm.rules import writer
from hunch_studies.worlds.recipes import DISHES, FORBIDDEN

DIALS = ("error", "refusal", "malformed")
_REQUEST = re.compile(r"dish (\w+) diet (\w+)")


@writer("critic", dials=DIALS)
@dataclass
class Critic(RuleWriter):
    """The rule, with its dials."""

    error: float = 0.0
    refusal: float = 0.0
    malformed: float = 0.0

    def __post_init__(self) -> None:
        if not all(0 <= getattr(self, dial) <= 1 for dial in DIALS):
            raise UsageError("The dials of scripted:critic must be from 0 to 1.")
        self.name = "scripted:critic"
        self.revision = f"1:{self.error},{self.refusal},{self.malformed}"

    def answer(self, prompt: str, sample: int) -> str:
        """Answer one of the three questions, or the last one of a judge of harm."""
        rng = sample_rng(prompt, "critic", sample)
        if rng.random() < self.refusal:
            return REFUSAL
        if "Two answers:" in prompt:
            return self.compared(prompt, rng)
        text = (re.search(r"^Answer: (.*)$", prompt, re.MULTILINE) or ["", ""])[1]
        if prompt.endswith("Critique:"):
            return self.criticised(prompt, text, rng)
        if "Revision:" in prompt:
            told = revised(prompt, text, rng)
            return told if rng.random() < self.malformed else f"Revision: {told}"
        harmed = bool(harms(prompt, text)) != bool(rng.random() < self.error)
        return "No" if harmed else "Yes"

    def criticised(self, prompt: str, text: str, rng: np.random.Generator) -> str:
        """Name a clause that breaks the principle, or none."""
        wrong = rng.random() < self.error
        found = foods(text) if wrong or not about(prompt) else harms(prompt, text)
        if not found or (wrong and rng.random() < 0.5):
            return "none"
        return f"The clause '{found[rng.integers(len(found))]}' breaks it."

    def compared(self, prompt: str, rng: np.random.Generator) -> str:
        """Say which of two texts breaks the principle less."""
        texts = re.findall(r"^[12]: (.*)$", prompt, re.MULTILINE)
        one, other = (len(harms(prompt, text)) for text in texts)
        if not about(prompt) or rng.random() < self.error:
            return str(rng.integers(1, 3))
        return "none" if one == other else "1" if one < other else "2"


def about(prompt: str) -> bool:
    """Return whether the principle is about diets."""
    return "diet" in _REQUEST.sub("", prompt)


def split(text: str) -> list[str]:
    """Return the clauses of a text."""
    return [clause.strip() for clause in text.split(";")]


def foods(text: str) -> list[str]:
    """Return the clauses that name a food."""
    return [clause for clause in split(text) if len(clause.split()) == 2 and not clause.startswith("add")]


def forbidden(prompt: str) -> frozenset[str]:
    """Return the foods that the diet of the request forbids."""
    found = _REQUEST.search(prompt)
    return FORBIDDEN.get(found[2], frozenset()) if found else frozenset()


def harms(prompt: str, text: str) -> list[str]:
    """Return the clauses that name a forbidden food."""
    return [clause for clause in split(text) if set(clause.split()) & forbidden(prompt)]


def revised(prompt: str, text: str, rng: np.random.Generator) -> str:
    """Return a text in which a food is another one everywhere, or is left out."""
    found = re.search(r"^Critique: .*'(.*)'", prompt, re.MULTILINE)
    clauses, request = split(text), _REQUEST.search(prompt)
    named = [found[1]] if found else foods(text)
    if not named:
        return text
    food = named[rng.integers(len(named))].split()[-1]
    suited = DISHES.get(request[1], ()) if request else ()
    bad = forbidden(prompt) if about(prompt) else frozenset()
    if other := [own for own in suited if own not in bad and own not in text.split()]:
        new = other[rng.integers(len(other))]
        return " ; ".join(re.sub(rf"\b{re.escape(food)}\b", new, own) for own in clauses)
    left = [own for own in clauses if food not in own.split()]
    return " ; ".join(left or clauses)
