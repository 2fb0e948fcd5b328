"""Recorded transitions from which a world model is written, and held-out ones for its evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from hunch.core import State, Transition, UsageError
from hunch.rl.episodes import play
from hunch.rl.small_models import tabulate, value_iteration
from hunch.rl.world_model import Prediction, Step, TrueCopy, frozen, right, steps_of

SMALL = 2_000
"""Maximum number of states of an environment that is enumerated for optimal play and held-out steps."""
LENGTH = 100
"""Maximum steps of a recorded episode."""
HELD_OUT = 200
"""Maximum number of held-out steps."""


def collected(env: Any, episodes: int) -> tuple[list[Step], list[Step]]:
    """Record transitions by playing; return them and held-out ones.

    Raises:
        UsageError: if there are no episodes, or the environment cannot be set to a given state.
    """
    if episodes < 1:
        raise UsageError("A world model needs at least one recorded episode: set more episodes.")
    model, rng = TrueCopy(env), np.random.default_rng(0)
    starts = [frozen(env.reset(seed=seed)[1]["raw"]) for seed in range(episodes)]
    best = _best(model, starts)
    good = episodes // 2 if best else 0
    buffer: list[Step] = []
    for seed in range(episodes):
        buffer += played(env, seed, best if best and seed < good else None, rng)
    if best:
        pairs = [(state, action) for state in best for action in model.actions(state)]
    else:
        others = [step for n in range(episodes) for step in played(env, 1_000 + n, None, rng)]
        pairs = [(step.state, step.action) for step in others]
    known = {(step.state, step.action) for step in buffer}
    unseen = [pair for pair in dict.fromkeys(pairs) if pair not in known]
    chosen = rng.permutation(len(unseen))[:HELD_OUT]
    return buffer, [_true(model, *unseen[int(i)], rng) for i in chosen]


def _best(model: TrueCopy, starts: Sequence[Any]) -> dict[Any, str] | None:
    """Return the best action of each reachable state; None if there are too many states."""
    try:
        table = tabulate(model, starts, model.actions, np.random.default_rng(0), most=SMALL)
    except UsageError as error:
        if "states" not in str(error):
            raise
        return None
    q = value_iteration(table, 0.99)
    return {state: table.actions[i][int(q[i].argmax())] for i, state in enumerate(table.states)}


def played(env: Any, seed: int, best: dict[Any, str] | None, rng: np.random.Generator) -> list[Step]:
    """Return the steps of an episode, played at random, or optimally with ``best``."""

    def act(state: State) -> str:
        return best[frozen(state.raw)] if best else str(rng.choice(state.options))

    return steps_of(islice(play(env, act, seed), LENGTH))


def _true(model: TrueCopy, state: Any, action: str, rng: np.random.Generator) -> Step:
    (prediction,) = model.step([state], [action], [rng])
    return Step(state, action, prediction.reward or 0.0, bool(prediction.done), prediction.next_state)


def given(data: Sequence[Sequence[Transition]]) -> tuple[list[Step], list[Step]]:
    """Return recorded transitions, with the last fifth held out.

    Raises:
        UsageError: if there are no transitions.
    """
    steps = steps_of(t for episode in data for t in episode)
    if len(steps) < 2:
        raise UsageError("A world model needs recorded transitions, and there are none.")
    kept = max(1, len(steps) * 4 // 5)
    return steps[:kept], steps[kept:]


def refuse_contradictions(steps: Sequence[Step]) -> None:
    """Check that transitions are consistent, so that a deterministic program could predict them.

    Raises:
        UsageError: if two transitions contradict each other.
    """
    first: dict[Any, Step] = {}
    for step in steps:
        known = first.setdefault((step.state, step.action), step)
        if not right(Prediction(known.done, known.reward, known.next_state), step):
            raise UsageError(
                f"The transitions contradict each other: from {step.state!r} {step.action!r} led to "
                f"{known[2:]!r} and to {step[2:]!r}. A deterministic program cannot predict both."
            )
