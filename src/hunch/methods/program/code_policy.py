"""Code policies: a model writes a policy as a program, sees the results of its episodes, and revises it.

    repeat
        choose parents among the programs so far, by the search rule
        write a policy; play it in a fixed set of episodes; fitness is the mean return
        feedback is the return of each episode and a trace of the worst

The search rule is a setting; islands are the evolutionary search of FunSearch, and the bandit is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hunch.methods.method import Method
from hunch.methods.program.agent import PROGRAM, BanditConfig, ProgramAgent
from hunch.ranges import PositiveInt
from hunch.roles.writer.bandit import REPAIRS, Bandit
from hunch.roles.writer.programs import Search
from hunch.roles.writer.search import BestOfN, Greedy, HillClimbing, Islands, Refinement


@dataclass(frozen=True, kw_only=True)
class CodePolicyConfig(BanditConfig):
    """Settings of code policies."""

    search: Literal["hill", "drift", "linear", "greedy", "islands", "bandit", "single"] = "hill"
    """Parent: best so far (hill), the latest of the best (drift), last (linear), best of last batch (greedy),
    islands, or none (single: best of n). The bandit also chooses what is asked for; it suits small models."""
    population: PositiveInt = 8
    """With greedy: programs per batch."""
    islands: PositiveInt = 4
    """With islands or bandit: number of islands."""


class CodePolicy(ProgramAgent):
    """The agent of code policies; arguments as for :class:`~hunch.methods.program.agent.ProgramAgent`."""

    config_class: ClassVar[type[Any]] = CodePolicyConfig

    def search(self) -> Search:
        """Return the search that the setting names."""
        c = self.config
        made: dict[str, Search] = {
            "hill": HillClimbing(),
            "drift": HillClimbing(drift=True),
            "linear": Refinement(),
            "greedy": Greedy(c.population),
            "islands": Islands(c.islands, temperature=1.0),
            "bandit": Bandit(c.islands, c.elites, c.afresh, c.repair or REPAIRS),
            "single": BestOfN(),
        }
        return made[c.search]


METHOD = Method(
    "code-policy",
    CodePolicy,
    "write the policy as a program, and revise it after its episodes",
    "Liang et al., Code as Policies, ICRA 2023; search as in FunSearch",
    leaf="LLM4RL / policy",
    suggested=("openai:gpt-4o-mini", "scripted:mutator"),
    **PROGRAM,
)
