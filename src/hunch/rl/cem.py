"""The cross-entropy method, for small policies in NumPy and for plans in a world model.

    repeat
        draw candidates from a normal distribution over the policy's parameters
        score each candidate
        fit the distribution to the candidates with the best scores

(Rubinstein 1999; Mannor, Rubinstein and Gat 2003; the added noise after Szita and Lorincz 2006.) It needs
only the scores of whole episodes, so a reward program is called once per generation, not once per step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hunch.core import FloatArray, UsageError


@dataclass(frozen=True)
class CEM:
    """Settings of the cross-entropy method, and the search itself.

    Attributes:
        population: Candidates per generation.
        elites: Number of best candidates, to which the next distribution is fitted.
        generations: Number of generations.
        spread: Initial standard deviation.
        noise: Added to the standard deviation, falling to 0 over the generations.

    Raises:
        UsageError: if there are fewer candidates than elites, no elites, or no generations.
    """

    population: int = 32
    elites: int = 8
    generations: int = 20
    spread: float = 0.1
    noise: float = 0.1

    def __post_init__(self) -> None:
        if not 1 <= self.elites <= self.population or self.generations < 1:
            raise UsageError(f"CEM needs population >= elites >= 1 and a generation, not {self}.")

    def search(
        self, score: Callable[[FloatArray], FloatArray], size: int, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """Yield the mean of the distribution after each generation, shape (size,).

        Args:
            score: Takes candidates, shape (population, size), and returns their scores, shape (population,).
            size: Number of parameters.
            rng: Random generator.
        """
        mean, spread = np.zeros(size), np.full(size, self.spread)
        for generation in range(self.generations):
            candidates = mean + spread * rng.standard_normal((self.population, size))
            best = candidates[np.argsort(-score(candidates), kind="stable")[: self.elites]]
            mean = best.mean(axis=0)
            spread = best.std(axis=0) + self.noise * (1 - generation / self.generations)
            yield mean


def policy_size(observation: int, action: int) -> int:
    """Return the number of parameters of a linear policy for these sizes of observation and action."""
    return (observation + 1) * action


def act(parameters: FloatArray, observations: FloatArray) -> FloatArray:
    """Return actions in [-1, 1] of linear policies with tanh, one policy per world.

    Args:
        parameters: Shape (n, (observation + 1) * action).
        observations: Shape (n, observation).

    Returns:
        Shape (n, action).
    """
    n, d = observations.shape
    weights = parameters.reshape(n, d + 1, -1)
    actions: FloatArray = np.tanh(np.einsum("nd,nda->na", observations, weights[:, :d]) + weights[:, d])
    return actions
