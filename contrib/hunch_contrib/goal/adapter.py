"""The adapter of RLAdapter: a small causal model that summarises a player, trained on helpful summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from hunch.core import EvidenceLevel
from hunch.lm import trainable

BATCH = 8
"""Summaries per update of the adapter (our choice)."""


class Sayer(Protocol):
    """Chooses a summary of how a player does."""

    @property
    def evidence(self) -> EvidenceLevel | None:
        """The evidence level of the model that chooses."""

    def say(self, prompt: str, rng: np.random.Generator) -> str:
        """Return a summary of a player, given its events."""

    def state_dict(self) -> dict[str, Any]:
        """Return the trained weights, and what else is needed to resume."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""


class Adapter(Sayer):
    """A small causal model that chooses a summary, and is trained on summaries that led to good scores.

    Args:
        summaries: The summaries to choose from.
        start: Causal model to fine-tune; empty for a new one.
        rate: Learning rate of Adam.
        seed: Seed of the weights of a new model.
    """

    def __init__(self, summaries: Sequence[str], start: str, rate: float, seed: int) -> None:
        import torch

        from hunch.lm.training import Learner  # loads torch
        from hunch.lm.training.words import new  # loads torch

        self.summaries = summaries
        self.model = trainable(start, context=256) if start else new(seed=seed, context=256)
        self.model.take(summaries)
        self.learner = Learner(torch.optim.Adam(self.model.parameters(), lr=rate))

    @property
    def evidence(self) -> EvidenceLevel:
        """The evidence level: L1 for a new model; otherwise what the model's config names, or L3."""
        return self.model.evidence

    def say(self, prompt: str, rng: np.random.Generator) -> str:
        """Draw a summary according to the model's probabilities after the prompt."""
        import torch

        with torch.no_grad():
            [logprobs] = self.model.scores([prompt], [self.summaries], ended=True)
        scores = logprobs.double().cpu().numpy()
        shares = np.exp(scores - scores.max())
        return self.summaries[int(rng.choice(len(shares), p=shares / shares.sum()))]

    def train(self, pairs: Sequence[tuple[str, str]], updates: int, rng: np.random.Generator) -> float:
        """Make the updates of one stage on prompts with their summaries, and return the mean loss."""
        import torch

        self.model.take(text for pair in pairs for text in pair)
        losses = []
        for _ in range(updates if pairs else 0):
            drawn = [pairs[i] for i in rng.integers(len(pairs), size=BATCH)]
            prompts, summaries = zip(*drawn, strict=True)
            logprobs = self.model.scores(prompts, [[summary] for summary in summaries], ended=True)
            losses.append(self.learner.update(-torch.cat(logprobs).mean()))
        return float(np.mean(losses)) if losses else 0.0

    def state_dict(self) -> dict[str, Any]:
        """Return weights, optimiser and vocabulary."""
        return {
            "network": self.model.state_dict(),
            "optimiser": self.learner.state_dict(),
            "words": list(self.model.words),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.model.load_state_dict(state["network"])
        self.learner.load_state_dict(state["optimiser"])
        self.model.take(state["words"])
