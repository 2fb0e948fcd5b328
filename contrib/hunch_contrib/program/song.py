"""Self-refined reward designer (Song et al., 2023): rewrites one reward until its evaluation is good.

    write a reward from four parts: environment, task, observations, rules
    repeat, about five times
        train a policy
        evaluate: the training process, the metrics of the task, the success rate; a verdict, good or bad
        if it is bad: rewrite the reward, given this evaluation

It differs from Eureka only in its search: one lineage instead of a population.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hunch.envs.design.problem import Problem
from hunch.methods.method import Method
from hunch.methods.program.agent import REWARD, ProgramAgent, ProgramConfig
from hunch.roles.writer.programs import Attempt, Search
from hunch.roles.writer.search import Refinement


@dataclass(frozen=True, kw_only=True)
class SongConfig(ProgramConfig):
    """Settings of the self-refined reward designer."""

    good: float = 0.95
    """Minimum fitness for the verdict good, after which the search keeps the reward (ours)."""


class Lineage(Refinement):
    """Linear refinement that stops at the first good program.

    Args:
        good: Fitness that counts as good.
    """

    def __init__(self, good: float) -> None:
        self.good = good

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Continue with the new program, unless the last one was good enough."""
        for attempt in attempts:
            if self.parent is None or self.parent.fitness is None or self.parent.fitness < self.good:
                self.parent = attempt


class Song(ProgramAgent):
    """The agent of this method; arguments as for :class:`~hunch.methods.program.agent.ProgramAgent`."""

    config_class: ClassVar[type[Any]] = SongConfig
    wording: ClassVar[str] = "e039e509"  # of ``prompt``

    def search(self) -> Search:
        """Return a linear search that stops at a good program."""
        return Lineage(self.config.good)

    @staticmethod
    def prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
        """Return the four parts and the evaluation of the last reward."""
        parts = [problem.text()]
        if parents:
            parts.append(f"The present reward:\n\n```python\n{parents[-1].program.strip()}\n```")
        if feedback:
            parts.append(f"Its evaluation (training process, metrics, success rate):\n{feedback}")
        verb = "Rewrite" if parents else "Design"
        rules = "Rules: use the listed variables only, and no others; keep the signature."
        ask = f"{verb} the reward: the function `{problem.function}`, in one block of Python code."
        return "\n\n".join([*parts, rules, ask])


METHOD = Method(
    "song",
    Song,
    "rewrite one reward, guided by its evaluation, until it is good",
    "Song et al., Self-Refined Large Language Model as Automated Reward Function Designer, 2023",
    **REWARD,
)
