"""Novelty as a reward source without a language model, a baseline for the rewards of a model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from hunch.core import Transition, World
from hunch.lm.base import LanguageModel
from hunch.roles.encoder import TextTable
from hunch.roles.reward import Running


class Counts:
    """A bonus of 1 / sqrt(N), where N counts a text over the whole run (Strehl and Littman, 2008).

    Args:
        of: What is counted: observations or events.
    """

    evidence = None

    def __init__(self, of: Literal["state", "event"] = "state") -> None:
        self.of = of
        self.begin(World(), 0)

    @property
    def settings(self) -> dict[str, Any]:
        """What is counted."""
        return {"of": self.of}

    def begin(self, world: World, seed: int) -> None:
        """Forget all counts."""
        self.counts: dict[str, int] = {}

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the bonus of each step's text, including counts of this batch."""
        texts = [t.next_state.observation if self.of == "state" else t.event for t in transitions]
        for text in texts:
            self.counts[text] = self.counts.get(text, 0) + 1
        return [self.counts[text] ** -0.5 for text in texts]

    def state_dict(self) -> dict[str, Any]:
        """All counts."""
        return {"counts": dict(self.counts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.counts = dict(state["counts"])


class RandomDistillation:
    """The error of a network that learns to predict a random network (RND; Burda et al., ICLR 2019).

    Its input is the embedding of the observation. Errors are divided by their running standard deviation.

    Args:
        encoder: Embeds observations as the mean of their lines.
        learning_rate: Adam learning rate.
        hidden: Width of both networks.
        batch: Observations per update.

    Raises:
        UsageError: if the model cannot embed.
    """

    evidence = None

    def __init__(
        self, encoder: LanguageModel, learning_rate: float = 1e-3, hidden: int = 64, batch: int = 32
    ) -> None:
        self.table, self.learning_rate = TextTable(encoder), learning_rate
        self.hidden, self.batch = hidden, batch
        self.models = {"encoder": encoder}
        self.begin(World(), 0)

    @property
    def settings(self) -> dict[str, Any]:
        """Encoder, sizes and learning rate."""
        own = {"encoder": self.table.lm.name, "hidden": self.hidden, "batch": self.batch}
        return {**own, "learning_rate": self.learning_rate}

    def begin(self, world: World, seed: int) -> None:
        """Draw new weights for both networks."""
        import torch
        from torch import nn

        def network() -> Any:
            sizes = (self.table.dim, self.hidden, self.hidden)
            layers = [nn.Linear(*sizes[:2]), nn.ReLU(), nn.Linear(*sizes[1:])]
            return nn.Sequential(*layers)

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.target, self.predictor = network().requires_grad_(False), network()
        self.optimiser = torch.optim.Adam(self.predictor.parameters(), lr=self.learning_rate, foreach=True)
        self.running, self.due = Running(), list[str]()

    def rewards(self, transitions: Sequence[Transition]) -> list[float]:
        """Return the error at each step's next observation; the predictor learns once per batch."""
        import torch

        texts = [t.next_state.observation for t in transitions]
        with torch.no_grad():
            values: list[float] = self._errors(texts).double().tolist()
        self.running.add(values)
        self.due += texts
        if len(self.due) >= self.batch:
            self.optimiser.zero_grad()
            self._errors(self.due).mean().backward()
            self.optimiser.step()
            self.due = []
        return [value / (self.running.deviation or 1.0) for value in values]

    def _errors(self, texts: Sequence[str]) -> Any:
        import torch

        vectors = [self.table.encode(text.splitlines() or [" "]).mean(axis=0) for text in texts]
        x = torch.from_numpy(np.stack(vectors))
        return (self.predictor(x) - self.target(x)).pow(2).mean(dim=1)

    def state_dict(self) -> dict[str, Any]:
        """Return networks, optimiser, and statistics of the errors."""
        parts = {name: getattr(self, name).state_dict() for name in ("target", "predictor", "optimiser")}
        return {**copy.deepcopy(parts), "running": self.running.figures(), "due": list(self.due)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        for name in ("target", "predictor", "optimiser"):
            getattr(self, name).load_state_dict(copy.deepcopy(state[name]))  # it would share the tensors
        self.running, self.due = Running.of(state["running"]), list(state["due"])
