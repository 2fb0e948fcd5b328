"""Plans of continuous actions in a world model, by the cross-entropy method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hunch.core import FloatArray
from hunch.rl.cem import CEM
from hunch.rl.world_model import WorldModel


def plan(
    model: WorldModel,
    state: Any,
    rng: np.random.Generator,
    *,
    horizon: int,
    bound: float,
    name: Callable[[float], Any] = float,
    cem: CEM | None = None,
) -> FloatArray:
    """Return the sequence of actions with the highest return that the search finds in a world model.

    Each action is one number. Dainese et al. (2024) use a horizon of 100, 1,000 candidates, 100 elites and 20
    generations for continuous control.

    Args:
        model: The world model; the steps of all candidates are requested together.
        state: First state of the plan.
        rng: The source of chance.
        horizon: Number of steps of the plan.
        bound: Actions are from -bound to bound.
        name: Returns the model's name of an action.
        cem: Settings of the search.

    Returns:
        Shape (horizon,), from -bound to bound. A candidate gets no reward after a step that the model cannot
        predict.
    """
    settings = cem or CEM(population=64, elites=8, generations=5, spread=bound, noise=bound / 4)

    def score(candidates: FloatArray) -> FloatArray:
        actions, earned = np.clip(candidates, -bound, bound), np.zeros(len(candidates))
        here = dict.fromkeys(range(len(candidates)), state)
        for t in range(horizon):
            live = list(here)
            chosen = [name(float(actions[i, t])) for i in live]
            found = model.step([here[i] for i in live], chosen, [rng] * len(live))
            for i, step in zip(live, found, strict=True):
                earned[i] += step.reward or 0.0
                here[i] = step.next_state
                if step.done is not False or step.next_state is None:
                    del here[i]
        return earned

    *_, best = settings.search(score, horizon, rng)
    return np.clip(best, -bound, bound)
