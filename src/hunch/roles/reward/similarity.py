"""Similarity of events and goals, as a reward source and as a test whether goals are reached.

Source: Du et al., "Guiding Pretraining in Reinforcement Learning with Large Language Models", ICML 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hunch.core import EvidenceLevel, FloatArray, Transition
from hunch.lm.base import LanguageModel
from hunch.roles.encoder.features import TextTable
from hunch.roles.reward.rewarded import RewardSource

ROUNDING: Final = 1e-9
"""How far below the threshold a cosine may be: that of a text with itself may be 0.9999999999999998."""


class Similarity(RewardSource):
    """Rewards the largest cosine between a step's event and a goal of the state, if it reaches a threshold.

    A step without an event has reward 0, so failed actions should have no event. Each text is embedded once.

    Args:
        encoder: A model that embeds.
        threshold: Cosines below the threshold count as 0 and reach no goal (released code: 0.99 in Crafter).
        of_task: In a state without goals, reward the similarity to its task.

    Raises:
        UsageError: if the model cannot embed.
    """

    def __init__(self, encoder: LanguageModel, threshold: float = 0.99, of_task: bool = True) -> None:
        self.table = TextTable(encoder)
        self.of_task = of_task
        self.threshold = threshold
        self.models = {"encoder": encoder}

    @property
    def evidence(self) -> EvidenceLevel:
        """The evidence level of the encoder."""
        return self.table.lm.evidence

    @property
    def settings(self) -> dict[str, Any]:
        """The encoder's name and the threshold."""
        return {"encoder": self.table.lm.name, "threshold": self.threshold}

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the largest cosine of each step, or 0 below the threshold."""
        best = [max(cosines, default=0.0) for cosines in self._cosines(transitions)]
        return [float(cosine) if self._reaches(cosine) else 0.0 for cosine in best]

    def reached(self, transitions: Sequence[Transition]) -> list[list[str]]:
        """Return the goals of each state that the step reached."""
        return [
            [goal for goal, cosine in zip(self._goals(t), cosines, strict=False) if self._reaches(cosine)]
            for t, cosines in zip(transitions, self._cosines(transitions), strict=True)
        ]

    def _reaches(self, cosine: float) -> bool:
        """Return whether a cosine reaches the threshold, up to rounding."""
        return cosine >= self.threshold - ROUNDING

    def _cosines(self, transitions: Sequence[Transition]) -> list[FloatArray]:
        """Return the cosine of each step's event with every goal; empty without an event."""
        self.table.add(text for t in transitions if t.event for text in (t.event, *self._goals(t)))
        cosines = []
        for t in transitions:
            if not t.event:
                cosines.append(np.zeros(0))
                continue
            vectors = self.table.encode([t.event, *self._goals(t)]).astype(np.float64)  # (1 + goals, dim)
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            cosines.append(np.asarray(vectors[1:] @ vectors[0]))
        return cosines

    def _goals(self, t: Transition) -> tuple[str, ...]:
        """Return the goals of a step's state; without any, its task, if that counts."""
        return t.state.goals or (tuple(t.state.task.splitlines()) if self.of_task else ())
