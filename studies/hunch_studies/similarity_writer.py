"""A writer of rewards for models that embed: a sentence encoder chooses what a reward is computed from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, UsageError
from hunch.envs.design.problem import Problem
from hunch.envs.design.reward_feedback import redrawn, repaired
from hunch.envs.design.reward_grammar import (
    Draw,
    Quantity,
    draft,
    drawn,
    listed,
    parts_of,
    quantities,
    written,
)
from hunch.lm.base import LanguageModel
from hunch.roles.encoder.features import TextTable
from hunch.roles.writer.programs import Attempt, Kind

TEMPERATURE = 0.1
"""Temperature of the draws, in units of the cosine (our choice)."""
SHARE = 0.5
"""Probability with which a finding is acted on, so that the revisions of a batch differ."""


class SimilarityWriter:
    """Writes rewards from a grammar, with quantities drawn by their similarity to the task.

    A reward is a sum of parts, each of which is a weight times a quantity, such as the distance between two
    variables. The probability of a quantity is in proportion to exp(cosine of its description and the task /
    temperature). An encoder cannot tell whether more or less of it is good, so signs and weights are drawn
    evenly. Revisions act on half of the findings of :mod:`hunch.envs.design.reward_feedback`; without
    feedback, half of the parts are drawn again.

    Args:
        lm: A model that embeds.
        temperature: Temperature of the draws; infinite for even draws, the uninformed control.

    Raises:
        UsageError: if the model cannot embed.
    """

    def __init__(self, lm: LanguageModel, temperature: float = TEMPERATURE) -> None:
        self.table, self.temperature = TextTable(lm), temperature

    @property
    def lm(self) -> LanguageModel:
        """The encoder, which a run meters."""
        return self.table.lm

    @property
    def evidence(self) -> EvidenceLevel:
        """The evidence level of the encoder."""
        return self.lm.evidence

    def write(
        self,
        problem: Problem,
        parents: Sequence[Attempt],
        feedback: str,
        n: int,
        first: int = 0,
        kind: Kind = "",
    ) -> list[str]:
        """Draw rewards, or revise the last parent by its feedback.

        Raises:
            UsageError: if the problem's interface lists no variables.
        """
        variables = listed(problem.interface)
        if not variables:
            raise UsageError(
                f"A model that only embeds, such as {self.table.lm.name}, writes rewards, and the problem "
                "lists no variables of a reward; use a model that generates."
            )
        names, found = [one.name for one in variables], quantities(variables)
        chances = self.chances(problem.task, found)
        parts = parts_of(parents[-1].program) if parents else []
        programs: list[str] = []
        for number in range(first, first + n):
            rng = np.random.default_rng([number, 13])
            draw = _by(found, chances, rng)
            if not parts:
                new = draft(draw, rng)
            elif feedback:
                new = repaired(parts, names, feedback, draw, rng, SHARE)
            else:
                new = redrawn(parts, draw, rng, SHARE)
            programs.append(written(problem.function, names, new))
        return programs

    def chances(self, task: str, found: Sequence[Quantity]) -> FloatArray:
        """Return the probability of each quantity, shape (len(found),)."""
        vectors = self.table.encode([task, *(one.words for one in found)]).astype(float)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        weights = np.exp(vectors[1:] @ vectors[0] / self.temperature)
        chances: FloatArray = weights / weights.sum()
        return chances


def _by(found: Sequence[Quantity], chances: FloatArray, rng: np.random.Generator) -> Draw:
    return lambda: drawn(found[int(rng.choice(len(found), p=chances))], rng)
