"""World models, which predict the result of an action, and the measurement of their quality.

A state is a text, or the environment's numbers in the form that :func:`frozen` returns, so that planners
can look them up. World models that use a language model are roles. The two models here do not use one: the
environment itself is the upper reference of every study, and a look-up the lower one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from hunch.core import FloatArray, Transition, UsageError
from hunch.numbers import number
from hunch.rl.calibration import calibration_error, reliability

TOLERANCE = 1e-5
"""Relative tolerance for numbers; absolute for numbers below 1 (Dainese et al. 2024)."""


@dataclass(slots=True)
class Prediction:
    """The prediction for one action in one state; a field is ``None`` if it is not predicted.

    The end is predicted first, then the reward, then the next state; each only if the one before was. After
    the end there is no next state.
    """

    done: bool | None = None
    reward: float | None = None
    next_state: Any = None


class WorldModel(Protocol):
    """Predicts the end, the reward and the next state of actions."""

    def step(
        self, states: Sequence[Any], actions: Sequence[Any], rngs: Sequence[np.random.Generator]
    ) -> list[Prediction]:
        """Predict one step from each state; each query has its own random generator."""


class Step(NamedTuple):
    """A recorded step; its states have the form that the world model uses."""

    state: Hashable
    action: str
    reward: float
    done: bool
    next_state: Hashable


def frozen(raw: Any) -> Hashable:
    """Return a raw state as plain numbers, texts and tuples, which are hashable.

    Raises:
        UsageError: if there is no raw state, or it contains anything else.
    """
    if isinstance(raw, np.ndarray | np.generic):
        raw = raw.tolist()
    if isinstance(raw, list | tuple):
        return tuple(frozen(part) for part in raw)
    if isinstance(raw, bool | int | float | str):
        return raw
    raise UsageError(f"A world model needs states of numbers, texts and lists, not {raw!r}.")


def steps_of(transitions: Iterable[Transition]) -> list[Step]:
    """Return transitions with their raw states."""
    return [
        Step(frozen(t.state.raw), t.action, t.reward, t.terminated, frozen(t.next_state.raw))
        for t in transitions
    ]


class TrueCopy:
    """The environment itself, placed in each requested state.

    Args:
        env: A copy (``World.copy``) of an environment that has ``place``.
    """

    def __init__(self, env: Any) -> None:
        self.env = env.unwrapped

    def actions(self, state: Any) -> tuple[str, ...]:
        """Return the admissible actions of a state."""
        _, info = self.env.place(state)
        return tuple(info["actions"])

    def step(
        self, states: Sequence[Any], actions: Sequence[Any], rngs: Sequence[np.random.Generator]
    ) -> list[Prediction]:
        """Take one step from each state, in the environment."""
        return [self._step(*query) for query in zip(states, actions, rngs, strict=True)]

    def _step(self, state: Any, action: str, rng: np.random.Generator) -> Prediction:
        self.env.np_random = rng
        self.env.place(state)
        _, reward, terminated, _, info = self.env.step(action)
        return Prediction(bool(terminated), float(reward), frozen(info["raw"]))


class LookUp:
    """Predicts the latest recorded result of the same step; no prediction if the step was never recorded.

    Args:
        steps: The recorded steps.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self.latest = {(s.state, s.action): s for s in steps}

    def step(
        self, states: Sequence[Any], actions: Sequence[Any], rngs: Sequence[np.random.Generator]
    ) -> list[Prediction]:
        """Look up the result of each step."""
        return [self._recall(self.latest.get(pair)) for pair in zip(states, actions, strict=True)]

    def _recall(self, step: Step | None) -> Prediction:
        if step is None:
            return Prediction()
        return Prediction(step.done, step.reward, None if step.done else step.next_state)


# ---- how good a model is ----------------------------------------------------------------------------------


def alike(value: Any, other: Any, tolerance: float = TOLERANCE) -> bool:
    """Return whether two states are equal: same structure, numbers within a tolerance; nan equals nothing."""
    if isinstance(value, tuple) or isinstance(other, tuple):
        same = isinstance(value, tuple) and isinstance(other, tuple) and len(value) == len(other)
        return same and all(alike(a, b, tolerance) for a, b in zip(value, other, strict=True))
    if isinstance(value, bool | str) or isinstance(other, bool | str):
        return type(value) is type(other) and bool(value == other)
    if value is None or other is None:
        return value is other
    one, two = number(value), number(other)
    if one is None or two is None:  # infinite, or too large to be compared but exactly
        return isinstance(value, int | float) and bool(value == other)
    return abs(one - two) <= tolerance * max(1.0, abs(two))


def right(prediction: Prediction, step: Step) -> bool:
    """Return whether all parts of a prediction are right; after the end, the next state does not matter."""
    if prediction.done is not step.done:
        return False
    if prediction.reward is None or not alike(prediction.reward, step.reward):
        return False
    return step.done or alike(prediction.next_state, step.next_state)


@dataclass(frozen=True)
class Quality:
    """The quality of a world model on recorded episodes.

    Attributes:
        by_depth: Share of correct predictions after 1, 2, ... steps in the model, shape (depth,).
        confidence: Mean share of draws that agree with the most frequent draw.
        calibration_error: Mean distance between confidence and accuracy, over ten bins of confidence.
        steps_per_second: Speed, with all steps requested together.
    """

    by_depth: FloatArray
    confidence: float
    calibration_error: float
    steps_per_second: float


def measure(
    model: WorldModel, episodes: Sequence[Sequence[Step]], *, depth: int = 5, draws: int = 1, seed: int = 0
) -> Quality:
    """Measure a model: accuracy after one and several model steps, calibration over draws, and speed."""
    steps = [step for episode in episodes for step in episode]
    if not steps:
        raise UsageError("There are no recorded steps to measure a world model on.")
    begun = time.perf_counter()
    drawn = [_asked(model, steps, [s.state for s in steps], seed + i) for i in range(draws)]
    seconds = time.perf_counter() - begun
    # Of each step, the most frequent prediction counts; its share of the draws is the confidence.
    confidence = np.zeros(len(steps))
    correct = np.zeros(len(steps))
    for i, (step, predictions) in enumerate(zip(steps, zip(*drawn, strict=True), strict=True)):
        votes = [_key(prediction) for prediction in predictions]
        most_frequent = _mode(votes)
        confidence[i] = votes.count(votes[most_frequent]) / draws
        correct[i] = right(predictions[most_frequent], step)
    return Quality(
        by_depth(model, episodes, depth, seed),
        float(confidence.mean()),
        calibration_error(reliability(confidence, correct)),
        len(steps) * draws / max(seconds, 1e-9),
    )


def by_depth(model: WorldModel, episodes: Sequence[Sequence[Step]], depth: int, seed: int = 0) -> FloatArray:
    """Return the share of correct predictions after 1, ..., ``depth`` steps in the model, shape
    (depth,).

    The model continues from every recorded state with the recorded actions. After an error, all its later
    steps count as wrong.
    """
    going = [(episode, start, step.state) for episode in episodes for start, step in enumerate(episode)]
    shares: list[float] = []
    for d in range(depth):
        going = [(episode, t, state) for episode, t, state in going if t + d < len(episode)]
        steps = [episode[t + d] for episode, t, _ in going]
        alive = [i for i, (_, _, state) in enumerate(going) if state is not None]
        predictions = _asked(model, [steps[i] for i in alive], [going[i][2] for i in alive], seed)
        hit = {i for i, p in zip(alive, predictions, strict=True) if right(p, steps[i])}
        after = dict(zip(alive, predictions, strict=True))
        shares.append(len(hit) / len(going) if going else math.nan)
        going = [
            (episode, t, after[i].next_state if i in hit else None) for i, (episode, t, _) in enumerate(going)
        ]
    return np.array(shares)


def _asked(model: WorldModel, steps: Sequence[Step], states: Sequence[Any], seed: int) -> list[Prediction]:
    rngs = [np.random.default_rng([seed, i]) for i in range(len(steps))]
    return model.step(states, [step.action for step in steps], rngs) if steps else []


def _key(prediction: Prediction) -> Hashable:
    return prediction.done, prediction.reward, None if prediction.done else prediction.next_state


def _mode(votes: Sequence[Hashable]) -> int:
    """Return the index of the first of the most frequent votes."""
    return max(range(len(votes)), key=lambda i: (votes.count(votes[i]), -i))
