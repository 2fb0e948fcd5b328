"""GIF-MCTS: a world model as code, found by tree search over programs (Dainese et al., NeurIPS 2024).

    from a description and recorded transitions, until all are predicted or no calls are left
        choose, by upper confidence bounds, a program of the tree and an operation on it:
            generate    write a program that continues its first lines
            improve     show it with one wrongly predicted transition; explain, then rewrite it
            fix         show it with the error that it raised; explain, then rewrite it
        the value of the program is the weighted share of transitions that it predicts correctly

The tree is :class:`~hunch.methods.program.program_tree.ProgramTree`. Its baselines use the same prompts and
writer: programs from scratch (single; the first of them is zero-shot), one lineage (linear), and the rule of
WorldCoder, which draws the program to refine from Beta distributions (thompson).

A call of the model writes one program. Once all transitions are predicted, the model is no longer asked, and
the winner is submitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hunch.envs.design.problem import Problem
from hunch.methods.method import Method
from hunch.methods.program.agent import PROGRAM, ProgramAgent, ProgramConfig
from hunch.methods.program.program_tree import ProgramTree
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.roles.writer.programs import Attempt, Request, Search, best, chat_prompt
from hunch.roles.writer.search import BestOfN, Refinement, Thompson


@dataclass(frozen=True, kw_only=True)
class GIFMCTSConfig(ProgramConfig):
    """Settings of GIF-MCTS."""

    search: Literal["tree", "single", "linear", "thompson"] = "tree"
    """Choice of parents: tree is the method; single, linear and thompson are its baselines."""
    lines: PositiveInt = 2
    """First lines of a program that a node adds to those of its parent (released code)."""
    c: NonNegativeFloat = 0.1
    """Weight of the exploration term in the upper confidence bound (released code)."""
    fixes: NonNegativeInt = 3
    """Maximum consecutive fixes of a failing program (released code)."""
    generate: Share = 0.5
    """Initial value of the operation generate, 0 to 1 (released code)."""
    improve: Share = 0.55
    """Initial value of the operation improve, 0 to 1 (released code)."""
    fix: Share = 0.5
    """Initial value of the operation fix, 0 to 1 (released code)."""
    beta_weight: PositiveFloat = 5.0
    """With thompson: weight of the fitness in the Beta distributions (released code of WorldCoder)."""
    retries: NonNegativeInt = 0
    """Rewrites of a program that cannot run or repeats an earlier one; with 0 it counts as a failure."""


class GIFMCTS(ProgramAgent):
    """The agent of GIF-MCTS; arguments as for :class:`~hunch.methods.program.agent.ProgramAgent`."""

    config_class: ClassVar[type[Any]] = GIFMCTSConfig
    wording: ClassVar[str] = "5af60686"  # of ``prompt``

    def search(self) -> Search:
        """Return the search in the tree, or a baseline."""
        c = self.config
        made: dict[str, Search] = {
            "tree": ProgramTree(c.lines, c.c, c.fixes, (c.generate, c.improve, c.fix)),
            "single": BestOfN(),
            "linear": Refinement(),
            "thompson": Thompson(c.beta_weight),
        }
        return made[c.search]

    def _written(self, requests: Sequence[Request], number: int) -> list[Attempt]:
        top = best(self.attempts)
        if top is None or top.fitness is None or top.fitness < 1.0:
            return super()._written(requests, number)
        again = range(number, number + len(requests))
        return [Attempt(n, top.program, None, parents=(top.number,), group=-1) for n in again]

    @staticmethod
    def prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
        """Return the prompt of the operation, which depends on the parent: generate, improve or fix."""
        if not parents or (not feedback and parents[-1].fitness is not None):
            return chat_prompt(problem, parents, feedback)
        last, ask = parents[-1], f"{problem.requested_functions} in one block of Python code"
        code = f"```python\n{last.program.strip()}\n```"
        if last.fitness is None and not last.error:
            return (
                f"{problem.text()}\n\nThese are the first lines of the program:\n\n{code}\n\n"
                f"Go on from them: write the whole program, which begins with these very lines, with {ask}."
            )
        return (
            f"{problem.text()}\n\nThis program was tried:\n\n{code}\n\nWhat became of it:\n{feedback}\n\n"
            f"First explain what is wrong with the program. Then write it anew, with {ask} that is complete "
            "in itself."
        )


METHOD = Method(
    "gif-mcts",
    GIFMCTS,
    "write a world model as code, by tree search over programs: generate, improve, fix",
    "Dainese et al., Generating Code World Models with Large Language Models Guided by Monte Carlo Tree "
    "Search, NeurIPS 2024",
    leaf="LLM4RL / world model",
    suggested=("openai:gpt-4o-mini", "scripted:modeller?repair=0.3"),
    **PROGRAM,
)
