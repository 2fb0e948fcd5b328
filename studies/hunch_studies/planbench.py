"""PlanBench: the recorded plans of a dozen models, executed in our environment.

The results have evidence level L2: recorded answers of these models, one draw per problem. Every function
takes answers and returns rows; :mod:`hunch_studies.planbench_page` makes the tables.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from pathlib import Path

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.rl.statistics import Estimate, over_episodes
from hunch_studies.planbench_bandit import Policy, Solved, bandit, matrix
from hunch_studies.planbench_chance import walks
from hunch_studies.recordings.planbench import Answer, Recording, Repair, recordings, repaired
from hunch_studies.recordings.statements import Statement
from hunch_studies.worlds.strips.pddl import Atom
from hunch_studies.worlds.strips.task import Task

RENAMED = ("mystery_", "random_", "obfuscated_randomized_", "obfuscated_deceptive_")
"""Prefix of the name of a domain with renamed actions and objects."""

_NO_PLAN = re.compile(
    r"no (valid |such )?(plan|solution|sequence)|unsolvable|impossible|not possible|contradict|inconsisten"
    r"|cannot be (achieved|reached|sat)|cycl|unachievable|not achievable|can ?not (be )?achieve|unreachable",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Score:
    """The success of a model's plans.

    Attributes:
        recording: Domain, model and prompt.
        n: Problems.
        answered: Problems to which an answer was recorded.
        success: Share of all problems solved; for unsolvable problems, of answers that say so without a plan.
        wrong_truths: Plans that the file gives as solutions but that are wrong.
        months: Months of the recordings; empty if unknown.
    """

    recording: Recording
    n: int
    answered: int
    success: Estimate
    wrong_truths: int
    months: str


@dataclass(frozen=True)
class BestOf:
    """The success of k planners whose plans are verified before one is executed.

    Attributes:
        k: Number of planners.
        random: Success of k planners drawn at random from all.
        greedy: Success of the best k, chosen one after the other with knowledge of the results.
        added: The planner chosen last.
    """

    k: int
    random: Estimate
    greedy: float
    added: str


@dataclass(frozen=True)
class Renamed:
    """A model on the same problems in usual and in renamed words.

    Attributes:
        domain: The renamed domain.
        model: The model.
        prompt: Kind of prompt.
        n: Problems.
        plain: Success in usual words.
        other: Success in other words.
        lost: The difference, with the bootstrap interval over the problems.
    """

    domain: str
    model: str
    prompt: str
    n: int
    plain: float
    other: float
    lost: Estimate


@dataclass(frozen=True)
class Repaired:
    """The effect of a sound verifier's feedback on a model.

    Attributes:
        recording: Domain and model.
        n: Problems.
        by_round: Success of the first plan, and after one round of feedback, after two and so on.
        last: Success at the end, with its interval.
    """

    recording: Recording
    n: int
    by_round: tuple[float, ...]
    last: Estimate


@cache
def _task(statement: Statement) -> Task:
    return Task(statement.problem)


def valid(statement: Statement, plan: Sequence[Atom] | None) -> bool:
    """Return whether a plan reaches the goal of a problem in our environment."""
    return plan is not None and _task(statement).verify(plan).valid


def solved(domain: str, answers: Iterable[Answer]) -> dict[int, bool]:
    """Return whether each answer is right: a valid plan or, in an unsolvable domain, a denial."""
    if domain.startswith("unsolvable"):
        return {a.instance: not a.plan and bool(_NO_PLAN.search(a.text)) for a in answers}
    return {answer.instance: valid(answer.statement, answer.plan) for answer in answers}


def score(recording: Recording, answers: Sequence[Answer]) -> Score:
    """Score the answers of one recording."""
    right = list(solved(recording.domain, answers).values())
    answered = sum(bool(answer.text) or answer.plan is not None for answer in answers)
    truths = [(answer.statement, answer.truth) for answer in answers if answer.truth]
    wrong = sum(not valid(statement, plan) for statement, plan in truths)
    months = sorted({answer.month for answer in answers} - {""})
    when = " to ".join(dict.fromkeys([months[0], months[-1]])) if months else ""
    return Score(recording, len(right), answered, over_episodes(right), wrong, when)


def best_of_k(table: Solved) -> list[BestOf]:
    """Return the success of 1, 2 and more planners with a sound verifier, on the problems that all answered.

    As every planner answered every problem, both curves are exact for these answers.
    """
    models, hits = matrix(table)
    solvers = hits.sum(axis=0)
    rows: list[BestOf] = []
    covered, chosen = np.zeros(hits.shape[1], dtype=bool), list[int]()
    for k in range(1, len(models) + 1):
        missed = [comb(len(models) - int(c), k) / comb(len(models), k) for c in solvers]
        rest = [i for i in range(len(models)) if i not in chosen]
        chosen.append(max(rest, key=lambda i: int((covered | hits[i]).sum())))
        covered |= hits[chosen[-1]]
        rows.append(BestOf(k, _mean(1 - np.array(missed)), float(covered.mean()), models[chosen[-1]]))
    return rows


def _mean(values: FloatArray) -> Estimate:
    """Return the mean over problems with its percentile bootstrap interval."""
    picks = np.random.default_rng(0).integers(len(values), size=(2000, len(values)))
    low, high = np.percentile(values[picks].mean(axis=1), [2.5, 97.5])
    return Estimate(float(values.mean()), float(low), float(high))


def renamed(tables: Mapping[tuple[str, str], Solved]) -> list[Renamed]:
    """Compare renamed domains with the same domains in usual words, model by model.

    Args:
        tables: The problems that each model solved, by domain and prompt.
    """
    rows: list[Renamed] = []
    for (domain, prompt), table in sorted(tables.items()):
        prefix = next((p for p in RENAMED if domain.startswith(p)), None)
        plain = tables.get((domain.removeprefix(prefix), prompt), {}) if prefix else {}
        for model in sorted(table.keys() & plain.keys()):
            both = matrix({"other": table[model], "plain": plain[model]})[1].astype(float)
            means = both.mean(axis=1)
            lost = _mean(both[1] - both[0])
            rows.append(Renamed(domain, model, prompt, both.shape[1], float(means[1]), float(means[0]), lost))
    return rows


def lengths(answers: Iterable[Answer]) -> float:
    """Return the cost of a planner without a known price: mean characters of prompt and answer."""
    return float(np.mean([answer.prompt + len(answer.text) for answer in answers]))


def repair(recording: Recording, repairs: Sequence[Repair]) -> Repaired:
    """Return the success of the first plan, and after each round of feedback."""
    reached: list[int | None] = []
    for one in repairs:
        checks = (i for i, plan in enumerate(one.plans) if valid(one.statement, plan))
        reached.append(next(checks, None))
    rounds = max((len(one.plans) for one in repairs), default=1)
    by_round = [np.mean([r is not None and r <= i for r in reached]) for i in range(rounds)]
    last = over_episodes([r is not None for r in reached])
    return Repaired(recording, len(repairs), tuple(map(float, by_round)), last)


@dataclass(frozen=True)
class Findings:
    """All rows of the study.

    Attributes:
        scores: Success by recording.
        best: The curve of the best of k, by domain and prompt.
        renamed: Usual against other words.
        policies: The bandit over planners, by domain and prompt.
        repaired: Repair after feedback.
        left_out: Files that could not be used, each with the reason.
    """

    scores: list[Score]
    best: dict[tuple[str, str], list[BestOf]]
    renamed: list[Renamed]
    policies: dict[tuple[str, str], list[Policy]]
    repaired: list[Repaired]
    left_out: list[str]


LEAST_PLANNERS = 3
"""Minimum number of models with answers to a domain for best of k and the bandit."""


def study(folder: str | Path, *, prices: Mapping[str, float] | None = None, trade: float = 0.3) -> Findings:
    """Execute all recorded plans of a folder, and return every row of the study.

    Args:
        folder: A clone of the public repository.
        prices: Cost of an answer of each model. Default: the characters that it reads and writes.
        trade: Success rate that is worth one answer of the most expensive planner.

    Raises:
        UsageError: if the folder has no recorded plans, or a planner has no price.
    """
    scores: list[Score] = []
    left_out: list[str] = []
    tables: dict[tuple[str, str], dict[str, dict[int, bool]]] = defaultdict(dict)
    costs: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for recording in recordings(folder):
        try:
            answers = recording.answers()
        except UsageError as error:
            left_out.append(str(error))
            continue
        row = score(recording, answers)
        scores.append(row)
        if not row.answered:
            left_out.append(f"{recording.path}: {recording.model} answered nothing.")
            continue
        place = recording.domain, recording.prompt
        solvable = not recording.domain.startswith("unsolvable")
        if place not in tables and solvable and recording.prompt == "zero-shot":
            scores += [
                Score(own, len(right), len(right), over_episodes(right), 0, "")
                for own, right in walks(recording, answers)
            ]
        tables[place][recording.model] = solved(recording.domain, answers)
        costs[place][recording.model] = (
            lengths(answers) if prices is None else _price(prices, recording.model)
        )
    several = [place for place in sorted(tables) if len(tables[place]) >= LEAST_PLANNERS]
    return Findings(
        scores,
        {place: best_of_k(tables[place]) for place in several},
        renamed(tables),
        {place: bandit(tables[place], costs[place], trade=trade) for place in several},
        _repairs(folder, left_out),
        left_out,
    )


def _price(prices: Mapping[str, float], model: str) -> float:
    if model not in prices or prices[model] <= 0:
        raise UsageError(f"There is no price above 0 for {model}.")
    return prices[model]


def _repairs(folder: str | Path, left_out: list[str]) -> list[Repaired]:
    rows: list[Repaired] = []
    try:
        found = repaired(folder)
    except UsageError as error:
        left_out.append(str(error))
        return rows
    for recording in found:
        try:
            rows.append(repair(recording, recording.repairs()))
        except UsageError as error:
            left_out.append(str(error))
    return rows
