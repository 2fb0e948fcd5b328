"""TEMPERA: a policy edits the prompt of a frozen model for each question, at test time.

Algorithm (Zhang et al., "TEMPERA: Test-Time Prompt Editing via Reinforcement Learning", ICLR 2023)::

    for each question, from an initial prompt, up to 8 times
        edit    ~  pi(. | question, prompt)          replace a word, swap two words, or stop
        reward  <- change of the score of the model's answer
    improve pi by PPO (:mod:`hunch.methods.policy.agent`)

The edits are the environment's listed actions, so the policy is that of PPO: two perceptrons on frozen
embeddings of question, prompt and edits. Scores are seen in training only.

Controls: ``edits=random`` edits at random, ``edits=none`` keeps the initial prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import FloatArray, Memoryless, State
from hunch.methods.method import ENCODER, Method
from hunch.methods.policy.ppo import PPO, PPOConfig
from hunch.ranges import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from hunch.rl.policy import Decision


@dataclass(frozen=True, kw_only=True)
class TEMPERAConfig(PPOConfig):
    """Settings of TEMPERA."""

    edits: Literal["policy", "random", "none"] = "policy"
    """Source of edits: the policy, or a control: random edits, or none."""
    gamma: Share = 0.999
    """Discount per edit (released code)."""
    learning_rate: PositiveFloat = 2e-3
    """Adam learning rate (our choice for perceptrons of this size; released code: 6e-4)."""
    entropy: NonNegativeFloat = 0.01
    """Weight of the policy's entropy (released code)."""
    horizon: PositiveInt = 32
    """Steps per stream between updates (released code)."""


class TEMPERA(PPO):
    """The agent of TEMPERA; arguments as for :class:`~hunch.methods.policy.ppo.PPO`."""

    config_class: ClassVar[type[Any]] = TEMPERAConfig

    def decide(self, states: Sequence[State], rng: np.random.Generator) -> list[Decision]:
        """Draw edits from the policy, or from the control."""
        who = self.config.edits
        if who == "policy":
            return super().decide(states, rng)
        # none: the first action, which is to stop, so that the prompt stays
        places = [int(rng.integers(len(s.options))) if who == "random" else 0 for s in states]
        return [Decision(s.options[i], (i,)) for s, i in zip(states, places, strict=True)]

    def learn(self) -> dict[str, float]:
        """Make the update if one is due; a control learns nothing."""
        if self.config.edits == "policy":
            return super().learn()
        self.kept.clear()
        return {}

    def probabilities(self, states: Sequence[State]) -> list[FloatArray]:
        """Return the probabilities of the edits of each state."""
        if self.config.edits == "policy":
            return super().probabilities(states)
        even = self.config.edits == "random"
        return [
            np.full(len(s.options), 1 / len(s.options)) if even else np.eye(len(s.options))[0] for s in states
        ]

    def player(self, seed: int) -> Memoryless:
        """Return a player that edits by the same policy, with a separate random generator."""
        return Memoryless(lambda states, rng: [decision.text for decision in self.decide(states, rng)], seed)


METHOD = Method(
    "tempera",
    TEMPERA,
    "a policy edits the prompt of a frozen model for each question",
    "Zhang et al., TEMPERA: Test-Time Prompt Editing via Reinforcement Learning, ICLR 2023",
    leaf="RL4LLM / prompt",
    environments="edits of a prompt as listed actions",
    models=ENCODER,
    control="random edits, and none",
    data="none",
)
