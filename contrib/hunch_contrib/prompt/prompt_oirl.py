"""Prompt-OIRL: learns which prompt suits a question from recorded results, without a language model.

Algorithm (Sun, "Query-Dependent Prompt Evaluation and Optimization with Offline Inverse RL", ICLR 2024)::

    data      <- (question, prompt, whether the answer was right)
    r(q, p)   <- fitted to the data, on frozen embeddings of both
    answer    <- the prompt with the largest r(question, .)

The reward is fitted by the squared error, which estimates the same probability as the paper's boosted trees
with the logistic loss: it is Q-learning without a future (:mod:`hunch.rl.q_learning`). Controls:
``choose=fixed`` takes the prompt with the best recorded results, ``choose=random`` any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import Memoryless, State, UsageError, World
from hunch.methods.method import ENCODER, Method
from hunch.methods.prior.dqn import DQN
from hunch.methods.prior.dqn_prior import DQNPriorConfig
from hunch.ranges import PositiveFloat


@dataclass(frozen=True, kw_only=True)
class PromptOIRLConfig(DQNPriorConfig):
    """Settings of Prompt-OIRL."""

    choose: Literal["question", "fixed", "random"] = "question"
    """Choose by the question (the method), the best prompt over all questions (fixed), or at random."""
    encoder: str = "phrases"
    """Frozen text encoder, given by its spec (paper: embeddings of a language model)."""
    learning_rate: PositiveFloat = 1e-3
    """Adam learning rate (our choice)."""


class PromptOIRL(DQN):
    """The agent of Prompt-OIRL; arguments as for :class:`~hunch.methods.prior.dqn.DQN`."""

    config_class: ClassVar[type[Any]] = PromptOIRLConfig
    fixed: ClassVar[Mapping[str, Any]] = {
        **DQN.fixed,
        **{"gamma": 0.0, "explore": "posterior", "epsilon": (0.0, 0.0, 1), "warmup": 0, "alpha": 1e-6},
    }

    def begin(self, world: World, seed: int) -> None:
        """Forget everything, and read the recorded results.

        Raises:
            UsageError: if all results are equal, or all have the same prompt.
        """
        steps = [step for episode in world.data for step in episode]
        results: dict[str, list[float]] = defaultdict(list)
        for step in steps:
            results[step.action].append(step.reward)
        if steps and len(results) < 2:
            raise UsageError("The recorded results are of one prompt only, so there is nothing to choose.")
        if steps and len({step.reward for step in steps}) < 2:
            raise UsageError("All recorded results are equal, so nothing can be learned from them.")
        self.means = {prompt: float(np.mean(own)) for prompt, own in results.items()}
        super().begin(world, seed)

    def act(self, states: Sequence[State]) -> list[str]:
        """Choose a prompt for each question."""
        return super().act(states) if self.config.choose == "question" else self.chosen(states, self.rng)

    def chosen(self, states: Sequence[State], rng: np.random.Generator) -> list[str]:
        """Choose for a control: at random, or the prompt that was best over all recorded questions."""
        if self.config.choose == "random":
            return [s.options[int(rng.integers(len(s.options)))] for s in states]
        return [max(s.options, key=lambda prompt: self.means.get(prompt, -np.inf)) for s in states]

    def player(self, seed: int) -> Memoryless:
        """Return a player that chooses in the same way, with a separate random generator."""
        return super().player(seed) if self.config.choose == "question" else Memoryless(self.chosen, seed)


METHOD = Method(
    "prompt-oirl",
    PromptOIRL,
    "the best prompt for a question, from recorded results of prompts",
    "Sun, Query-Dependent Prompt Evaluation and Optimization with Offline Inverse RL, ICLR 2024",
    leaf="RL4LLM / prompt",
    environments="prompts as listed actions, one step",
    models=ENCODER,
    control="the best fixed prompt, and a random one",
    data="needed",
)
