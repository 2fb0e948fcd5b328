"""The planner: does the model name the next skill of a plan?

The skills are scored as in SayCan (:func:`hunch.methods.planner.examples.build_scorer`), with the kitchen's
examples of plans. A skill is right if a plan that reaches the errand's goal continues with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from hunch.audition.question import USUAL, Bed, Manner, Role, Scores
from hunch.core import State
from hunch.envs.kitchen.errands import ERRANDS, EXAMPLES, plans
from hunch.envs.kitchen.skills import VERBS, subtasks
from hunch.envs.kitchen.world import DONE
from hunch.lm.base import LanguageModel
from hunch.lm.ways import WAYS
from hunch.methods.planner.examples import ExamplePrior, build_scorer, shown_to
from hunch.methods.planner.saycan import SayCanConfig
from hunch.roles.prior.base import DistributionPrior

BEDS = (Bed("hunch/Kitchen-v0"),)
SHOWN: Final = 12
"""Examples of plans that a model reads first (``--examples`` of SayCan; paper: 17): each costs tokens. An
encoder, and the words that a model is compared with, have all, because to compare costs next to nothing."""
ALL: Final = 0
SKILLS = (*(task.name for verb in VERBS for task in subtasks(verb)), DONE)


class Due(NamedTuple):
    """A transcript of skills, the skills that may come next, and the number of the errand."""

    state: State
    next: frozenset[str]
    errand: int


def skills(
    lm: LanguageModel,
    drawn: Sequence[Due],
    seed: int,
    manner: Manner = USUAL,
    *,
    examples: int | None = None,
) -> Scores:
    """Return for each transcript whether the most likely skill is right; without a skill it is wrong.

    Args:
        lm: The model.
        drawn: The transcripts.
        seed: Seed of what the model draws.
        manner: How it is asked.
        examples: Examples of plans that it reads or, by similarity, compares with. Default: :data:`SHOWN` to
            read, all to compare.
    """
    config = replace(SayCanConfig().prior, way=manner.way, max_tokens=manner.max_tokens, patience=None)
    # By similarity, an encoder compares the errand with the examples, as it does by default.
    prior = ExamplePrior(lm) if manner.way == "similarity" else build_scorer(config, lm)
    if examples is None:
        examples = ALL if isinstance(prior, ExamplePrior) else SHOWN
    states = shown_to(prior, [due.state for due in drawn], examples=examples, blank=manner.blank)
    k = None if isinstance(prior, DistributionPrior) else 1
    proposals = prior.propose(states, k, np.random.default_rng(seed))
    named = ["" if p.fallbacks == 1 else SKILLS[p.indices[p.weights.argmax()]] for p in proposals]
    right = np.array([float(name in due.next) for name, due in zip(named, drawn, strict=True)])
    first = np.array([not due.state.history for due in drawn])
    last = np.array([due.next == {DONE} for due in drawn])
    columns = {"first skill": _mean(right[first]), "stops in time": _mean(right[last])}
    stated = came = None
    if isinstance(prior, DistributionPrior):  # the favourite's probability, where one skill is right
        single = np.array([len(due.next) == 1 for due in drawn])
        stated = np.array([p.weights.max() for p in proposals])[single]
        came = right[single]
    unread = float(np.mean([p.fallbacks == 1 for p in proposals]))
    return Scores(right, [due.errand for due in drawn], columns, stated=stated, came=came, unread=unread)


def transcripts(bed: Bed, n: int, seed: int) -> list[Due]:
    """Draw n beginnings of plans that succeed; all errands occur equally often."""
    rng = np.random.default_rng(seed)
    choices: list[Due] = []
    while len(choices) < n:
        for number in rng.permutation(len(ERRANDS)).tolist():
            known = plans(ERRANDS[number].goal)
            plan = known[rng.integers(len(known))]
            done = plan[: rng.integers(len(plan))]
            due = frozenset(p[len(done)] for p in known if p[: len(done)] == done)
            history = tuple(("", skill) for skill in done)
            choices.append(Due(_state(ERRANDS[number].text, history), due, number))
    return choices[:n]


def _state(task: str, history: Any) -> State:
    return State("", task, SKILLS, history, raw=EXAMPLES)


def _mean(values: np.ndarray[Any, Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")


PLANNER = Role(
    "planner",
    "share of transcripts for which the next skill is right",
    ("generate", "score", "label", "embed", "decide"),
    BEDS,
    transcripts,
    skills,
    ways=WAYS,
    blank="the errand, and the examples of plans",
)
