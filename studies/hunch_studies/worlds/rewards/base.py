"""What a world of reward design is, and what worlds share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hunch.core import FloatArray
from hunch.rl.cem import CEM

Variables: TypeAlias = dict[str, FloatArray]
"""The state of n worlds: an array of shape (n,) or (n, size) per variable."""

SMALL = CEM(generations=20, spread=0.1, noise=0.1)
"""A learner that takes small steps."""


class World(Protocol):
    """n worlds side by side.

    Attributes:
        version: Identifies stored trials. It changes with whatever changes a trial: the world, its learner,
            how policies are evaluated.
        task: The task in a sentence.
        variables: The variables that a reward may read, with shape, meaning and unit.
        horizon: Steps of an episode.
        learner: The inner learner.
        episodes: Episodes per candidate; all candidates of a generation have the same first states, so that
            they can be compared.
        sizes: Length of observation and action of a policy.
        degree_description: The degree of success in words.
        sparse: A reward program that rewards success only.
        dense: A reward program written by hand.
    """

    version: ClassVar[str]
    task: ClassVar[str]
    variables: ClassVar[Mapping[str, str]]
    horizon: ClassVar[int]
    learner: ClassVar[CEM]
    episodes: ClassVar[int]
    sizes: ClassVar[tuple[int, int]]
    degree_description: ClassVar[str]
    sparse: ClassVar[str]
    dense: ClassVar[str]

    def begin(self, n: int, rng: np.random.Generator) -> Variables:
        """Draw n first states."""
        ...

    def step(self, state: Variables, action: FloatArray) -> Variables:
        """Return the state after actions in [-1, 1], shape (n, action)."""
        ...

    def observe(self, state: Variables) -> FloatArray:
        """Return the observation of a policy, shape (n, observation)."""
        ...

    def success(self, state: Variables) -> NDArray[np.bool_]:
        """Return whether the task is solved, shape (n,)."""
        ...

    def degree(self, state: Variables) -> FloatArray:
        """Return how far the task is solved, from 0 to 1, shape (n,)."""
        ...


@runtime_checkable
class HasEasy(Protocol):
    """A world with states from which its task is easier, for a curriculum."""

    def begin_easily(self, n: int, rng: np.random.Generator) -> Variables:
        """Draw n easy first states."""
        ...


def met(asked: float, values: FloatArray) -> FloatArray:
    """Return how far values meet a limit: 1 up to it, then less in proportion, shape (n,)."""
    share: FloatArray = asked / np.maximum(values, asked)
    return share
