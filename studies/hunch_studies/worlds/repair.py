"""Repair: a recipe with an injected error; the action is the repaired one.

Demonstrations have the feedback, which names clause and rule, and the recipe before the injection.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from hunch.core import UsageError
from hunch.envs.base import Outcome, TextEnv
from hunch.ranges import PositiveInt
from hunch_studies.worlds.recipes import COOKING, DISHES, FOODS, FORBIDDEN, SPICES, Request, requests

RULES: Final = ("diet", "dish", "order", "twice")
"""Kinds of errors: food that the diet forbids, food of another dish, cooked before it is cut, said twice."""


class Broken(NamedTuple):
    """A request with an invalid answer, the feedback on it, and the answer before."""

    request: Request
    text: str
    feedback: str
    repair: str

    def __str__(self) -> str:
        return f"{self.request} {self.text} |"


def plain(request: Request, rng: np.random.Generator) -> list[str]:
    """Write a recipe without errors: one or two foods, of which some are washed or cut first."""
    suited = [food for food in DISHES[request.dish] if food not in FORBIDDEN[request.diet]]
    clauses = list[str]()
    for food in rng.permutation(suited)[: int(rng.integers(1, 3))]:
        clauses += [f"wash {food}"] * (rng.random() < 0.5) + [f"cut {food}", f"{rng.choice(COOKING)} {food}"]
    clauses += [f"add {rng.choice(SPICES)}"] * (rng.random() < 0.5)
    return [*clauses, "serve", *(["enjoy"] * (rng.random() < 0.5))]


def injected(request: Request, rng: np.random.Generator) -> Broken:
    """Inject an error into a recipe, which the rest of the recipe shows how to mend."""
    clauses, rule = plain(request, rng), str(rng.choice(RULES))
    repair = " ; ".join(clauses)
    i = int(rng.choice([i for i, clause in enumerate(clauses) if clause.split()[0] in COOKING]))
    verb, food = clauses[i].split()
    bad = sorted(FORBIDDEN[request.diet] & set(DISHES[request.dish])) if rule == "diet" else []
    if rule in ("diet", "dish"):  # in one clause; the one before it still names the food
        others = [
            own for own in FOODS if own not in DISHES[request.dish] and own not in FORBIDDEN[request.diet]
        ]
        clauses[i] = f"{verb} {bad[0] if bad else rng.choice(others)}"
        told = f"{clauses[i]} : {'diet' if bad else 'dish'} , {verb} {food}"
    elif rule == "order":
        clauses[i - 1 : i + 1] = clauses[i - 1 : i + 1][::-1]
        told = f"{verb} {food} : order , cut {food} first"
    else:
        clauses.insert(int(rng.integers(i, len(clauses) - 1)) + 1, clauses[i])
        told = f"{verb} {food} : twice"
    return Broken(request, " ; ".join(clauses), told, repair)


class Repair(TextEnv):
    """Repair a recipe in which one rule was broken.

    Args:
        split: Requests for ``training``, or those ``held out``.
        demonstrations: Number of examples.
        told: State the right feedback after the recipe: the upper bound of what feedback can do.
        max_steps: Step limit of an episode; the first step ends it.
        render_mode: ``"ansi"``.
    """

    offers = ("free_text", "events")

    def __init__(
        self,
        *,
        split: Literal["training", "held out"] = "training",
        demonstrations: PositiveInt = 4_000,
        told: bool = False,
        max_steps: PositiveInt = 1,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps, render_mode)
        self.requests = requests(split)
        self.demonstrations = demonstrations
        self.told = told

    @cached_property
    def examples(self) -> tuple[tuple[str, tuple[str, ...]], ...]:  # type: ignore[override]
        """Broken recipes with feedback and repair."""
        rng, known = np.random.default_rng(0), requests("training")
        drawn = [injected(known[i], rng) for i in rng.integers(len(known), size=self.demonstrations)]
        return tuple((self._text_of(own), (own.feedback, own.repair)) for own in drawn)

    def _text_of(self, broken: Broken) -> str:
        return f"{broken} feedback : {broken.feedback}" if self.told else str(broken)

    def _begin(self, options: Mapping[str, Any]) -> Outcome:
        if options:
            raise UsageError(f"Repair has no option {next(iter(options))!r} for reset.")
        rng = self.task_random
        self.broken = injected(self.requests[int(rng.integers(len(self.requests)))], rng)
        return Outcome(self._text_of(self.broken), None)

    def _move(self, action: str) -> Outcome:
        right = " ".join(action.split()) == self.broken.repair
        same = " ".join(action.split()) == self.broken.text
        told = (
            "The error is mended." if right else "Nothing was changed." if same else "It is another recipe."
        )
        return Outcome("", None, float(right), True, right, event=told)

    def oracle(self) -> list[str]:
        """Return the recipe before the error."""
        return [self.broken.repair]
