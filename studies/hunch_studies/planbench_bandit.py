"""A choice of planners, and a bandit that learns which planner to ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hunch.core import FloatArray, UsageError
from hunch.rl.statistics import Estimate

Hits: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.bool_]]
"""True if a planner (row) solved a problem (column)."""
Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Solved: TypeAlias = Mapping[str, Mapping[int, bool]]
"""For each model whether it solved each problem, by the problem's number."""


@dataclass(frozen=True)
class Policy:
    """A way to choose a planner for each problem, over many orders of the problems.

    Attributes:
        name: Name of the policy.
        success: Share of problems solved.
        cost: Mean cost per problem, in units of the most expensive planner's.
        worth: Success minus ``trade`` times cost, which the bandit maximises; with its range over the orders.
    """

    name: str
    success: float
    cost: float
    worth: Estimate


def matrix(table: Solved) -> tuple[list[str], Hits]:
    """Return the models, and whether each solved each problem that all of them answered."""
    models = sorted(table)
    common = sorted(set.intersection(*(set(table[model]) for model in models)))
    if not common:
        raise UsageError(f"The planners {', '.join(models)} have no problem in common.")
    return models, np.array([[table[model][i] for i in common] for model in models], dtype=bool)


def bandit(
    table: Solved, costs: Mapping[str, float], *, trade: float = 0.3, orders: int = 50
) -> list[Policy]:
    """Choose a planner for each problem, and learn from the validity of its plan.

    Thompson sampling draws each planner's success from its earlier results, and takes the best after costs.
    It is compared with random choice, with the planner that is best in hindsight, and with asking planners
    from the cheapest upwards until the verifier accepts a plan.

    Args:
        table: The problems that each planner solved.
        costs: Cost of an answer of each planner, in any unit.
        trade: Success rate that is worth one answer of the most expensive planner.
        orders: Random orders of the problems.
    """
    models, hits = matrix(table)
    price = np.array([costs[model] for model in models])
    price = price / price.max()
    fixed = hits.mean(axis=1) - trade * price
    best = int(fixed.argmax())
    n = hits.shape[1]
    choosers: dict[str, Callable[[np.random.Generator], FloatArray]] = {
        "a planner at random": lambda rng: _played(
            hits, price, rng.integers(len(models), size=n), np.arange(n)
        ),
        "Thompson sampling": lambda rng: _thompson(hits, price, trade, rng),
        f"best in hindsight: {models[best]}": lambda rng: _played(
            hits, price, np.full(n, best), np.arange(n)
        ),
        "cheapest first until valid": lambda rng: _cascade(hits, price),
    }
    rows: list[Policy] = []
    for name, choose in choosers.items():
        runs = np.array([choose(np.random.default_rng(seed)) for seed in range(orders)])
        worth = runs[:, 0] - trade * runs[:, 1]
        low, high = np.percentile(worth, [2.5, 97.5])
        spread = Estimate(float(worth.mean()), float(low), float(high))
        rows.append(Policy(name, float(runs[:, 0].mean()), float(runs[:, 1].mean()), spread))
    return rows


def _played(
    hits: Hits,
    price: FloatArray,
    chosen: Numbers,
    order: Numbers,
) -> FloatArray:
    """Return mean success and cost of a sequence of choices."""
    return np.array([hits[chosen, order].mean(), price[chosen].mean()])


def _thompson(
    hits: Hits,
    price: FloatArray,
    trade: float,
    rng: np.random.Generator,
) -> FloatArray:
    order = rng.permutation(hits.shape[1])
    wins, losses = np.ones(len(price)), np.ones(len(price))
    chosen = np.zeros(len(order), dtype=np.int64)
    for t, problem in enumerate(order):
        chosen[t] = (rng.beta(wins, losses) - trade * price).argmax()
        hit = hits[chosen[t], problem]
        wins[chosen[t]] += hit
        losses[chosen[t]] += not hit
    return _played(hits, price, chosen, order)


def _cascade(hits: Hits, price: FloatArray) -> FloatArray:
    """Return mean success and cost if planners are asked from the cheapest upwards until a plan is valid."""
    order = price.argsort(kind="stable")
    before = np.vstack([np.zeros(hits.shape[1], dtype=bool), np.logical_or.accumulate(hits[order])[:-1]])
    return np.array([hits.any(axis=0).mean(), (~before * price[order][:, None]).sum(axis=0).mean()])
