"""Text2Reward (Xie et al., ICLR 2024): one dense reward from a description, then refined by feedback.

    write a reward from the interface and the instruction; repeat until there is code
    repeat
        run it; report an error to the model
        train a policy; report its behaviour to the model, with all programs and feedback so far

In the paper a person describes the policy's behaviour; here the design problem does, in numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hunch.envs.design.problem import Problem
from hunch.methods.method import Method
from hunch.methods.program.agent import REWARD, ProgramAgent, ProgramConfig
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveInt
from hunch.roles.writer.programs import Attempt, Request, Search


@dataclass(frozen=True, kw_only=True)
class Text2RewardConfig(ProgramConfig):
    """Settings of Text2Reward."""

    temperature: NonNegativeFloat = 0.7
    """Sampling temperature of the model (released code, interactive generator)."""
    retries: NonNegativeInt = 5
    """Further requests after an answer without usable code (ours; released code: without limit)."""
    history: PositiveInt = 3
    """Number of latest programs with feedback in the prompt (ours)."""


class Conversation:
    """A linear search: the last attempts are the parents of the next program.

    Args:
        length: Number of parents.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self.past: list[Attempt] = []

    def ask(self, n: int, rng: np.random.Generator) -> list[Request]:
        """Return ``n`` requests with the last attempts as parents."""
        return [Request(tuple(self.past[-self.length :]))] * n

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Record the new attempts."""
        self.past += attempts


class Text2Reward(ProgramAgent):
    """The agent of Text2Reward; arguments as for :class:`~hunch.methods.program.agent.ProgramAgent`."""

    config_class: ClassVar[type[Any]] = Text2RewardConfig
    wording: ClassVar[str] = "29255f34"  # of ``prompt``

    def search(self) -> Search:
        """Return the search, without any trials."""
        return Conversation(self.config.history)

    @staticmethod
    def prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
        """Return the interface, the instruction, and the latest programs with what became of each."""
        parts = [
            "You are an expert in robotics, reinforcement learning and code generation.",
            problem.text(),
        ]
        for attempt in parents:
            outcome = feedback if attempt is parents[-1] else attempt.outcome_text() if feedback else ""
            parts.append(f"```python\n{attempt.program.strip()}\n```")
            parts += [f"Feedback:\n{outcome}"] if outcome else []
        again = " that is better by the feedback" if parents else ""
        ask = f"Write a dense reward{again}: the function `{problem.function}`, in one block of Python code."
        return "\n\n".join([*parts, ask])


METHOD = Method(
    "text2reward",
    Text2Reward,
    "write a dense reward from a description, and refine it in one conversation",
    "Xie et al., Text2Reward: Reward Shaping with Language Models for RL, ICLR 2024",
    **REWARD,
)
