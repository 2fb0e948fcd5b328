"""Eureka (Ma et al., ICLR 2024): batches of reward programs; the best is the context of the next batch.

    repeat
        draw K programs from the same conversation
        train a policy with each; fitness is the task's own metric
        the best of the batch, with the curves of its components, becomes the context of the next batch
        if all K failed: draw again from the same context

The context is always four messages: system, user, best answer, its feedback. Departures: all code of an
answer is kept, not only its last function, and answers stay matched to their results if some
fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hunch.envs.design.problem import Problem
from hunch.methods.method import Method
from hunch.methods.program.agent import REWARD, ProgramAgent, ProgramConfig
from hunch.ranges import PositiveInt
from hunch.roles.writer.programs import Attempt, Search
from hunch.roles.writer.search import Greedy

SYSTEM = (
    "You are a reward engineer trying to write reward functions to solve reinforcement learning tasks as "
    "effectively as possible. Your goal is to write a reward function for the environment that will help the "
    "agent learn the task described in text."
)
ADVICE = (
    "Please carefully analyze the feedback and provide a new, improved reward function:\n"
    "(1) If the success rates are always near zero, then you must rewrite the entire reward function.\n"
    "(2) If the values for a certain reward component are near identical throughout, then the training is "
    "not able to optimize it as it is written: change its scale, re-write it, or discard it.\n"
    "(3) If some reward components' magnitude is significantly larger, then you must re-scale them."
)


@dataclass(frozen=True, kw_only=True)
class EurekaConfig(ProgramConfig):
    """Settings of Eureka."""

    population: PositiveInt = 16
    """Programs per batch, K (paper; released config: 3). The number of streams should divide it."""
    keep: Literal["batch", "best"] = "batch"
    """Parent of the next batch: the best program of the last batch (released code), or of all batches."""


class Eureka(ProgramAgent):
    """The agent of Eureka; arguments as for :class:`~hunch.methods.program.agent.ProgramAgent`."""

    config_class: ClassVar[type[Any]] = EurekaConfig
    wording: ClassVar[str] = "46e78e90"  # of ``prompt``

    def search(self) -> Search:
        """Return a search by batches; the best program of a batch, or of all, is the next parent."""
        return Greedy(self.config.population, keep=self.config.keep == "best")

    @staticmethod
    def prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
        """Return the system and user messages, and the best answer with its feedback, if there is one."""
        parts = [SYSTEM, problem.text()]
        if parents:
            parts.append(f"You wrote:\n\n```python\n{parents[-1].program.strip()}\n```")
        if feedback:
            parts.append(
                f"We trained a policy with it and tracked its components and the success rate:\n{feedback}"
            )
        if parents:
            parts.append(ADVICE)
        parts.append(f"Write the function `{problem.function}` as one block of Python code.")
        return "\n\n".join(parts)


METHOD = Method(
    "eureka",
    Eureka,
    "write batches of rewards; the best one with its curves is the context of the next batch",
    "Ma et al., Eureka: Human-Level Reward Design via Coding Large Language Models, ICLR 2024",
    **REWARD,
)
