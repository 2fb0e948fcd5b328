"""FunSearch (Romera-Paredes et al., Nature 2023): islands of programs, with two programs in every prompt.

    try the problem's own program, and put it on every island
    repeat
        draw an island; draw two of its clusters of equal scores with replacement, preferring fit ones; draw a
            program of each, preferring short ones
        prompt: both in ascending order of score as ``f_v0`` and ``f_v1``, then the header of ``f_v2``
        draw four samples; run each; put those that run on the island
        every so many programs: empty the worse half of the islands, and restart each with the best program
            of a better island

The released code resets islands every four hours; here it depends on the number of programs, so that a run
can be repeated. The other searches, with the same prompt and writer, are its baselines.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hunch.core import UsageError, World
from hunch.envs.design.code import defined_last, flaw, rename, with_names_of
from hunch.envs.design.problem import Problem
from hunch.methods.method import Method
from hunch.methods.program.agent import PROGRAM, BanditConfig, ProgramAgent
from hunch.ranges import NonNegativeInt, PositiveFloat, PositiveInt
from hunch.roles.writer.bandit import REPAIRS, Bandit
from hunch.roles.writer.programs import Attempt, Kind, Search, chat_prompt
from hunch.roles.writer.search import BestOfN, HillClimbing, Islands, Within


@dataclass(frozen=True, kw_only=True)
class FunSearchConfig(BanditConfig):
    """Settings of FunSearch."""

    search: Literal["islands", "hill", "drift", "bandit", "single"] = "islands"
    """Choice of parents: from islands (paper), the best so far (hill), the latest of the best (drift), or the
    problem's program (single). The bandit also chooses what is asked for, and needs plain requests."""
    islands: PositiveInt = 10
    """Number of islands, used with search islands (released code) and bandit."""
    parents: PositiveInt = 2
    """Programs in a prompt (released code)."""
    samples: PositiveInt = 4
    """Programs written from one prompt (released code); needs as many streams."""
    cluster_temperature: PositiveFloat = 0.1
    """Initial temperature of the softmax over clusters of an island, in units of fitness (released code)."""
    within: Within = "short"
    """Which program of a cluster is drawn: preferably a short one (released code), any, or the latest."""
    period: PositiveInt = 30_000
    """Programs per island over which the temperature of the softmax falls to 0 (released code)."""
    reset_every: NonNegativeInt = 170_000
    """Programs between resets of islands; 0 for no resets (paper: 4 of 48 hours, two million programs)."""


class FunSearch(ProgramAgent):
    """The agent of FunSearch; arguments as for :class:`~hunch.methods.program.agent.ProgramAgent`."""

    config_class: ClassVar[type[Any]] = FunSearchConfig
    wording: ClassVar[str] = "adc4883b"  # of ``prompt``
    begins_with_start = True

    def begin(self, world: World, seed: int) -> None:
        """Forget all programs.

        Raises:
            UsageError: if the problem has no function to evolve.
        """
        super().begin(world, seed)
        if world.problem and (not self.problem.function or self.problem.as_class is not None):
            raise UsageError("FunSearch needs a problem that names the function to write, not a class.")

    def search(self) -> Search:
        """Return the search over islands, or a baseline."""
        c = self.config
        if c.search == "islands":
            return Islands(
                c.islands, c.parents, c.cluster_temperature, c.period, c.reset_every, c.samples, c.within
            )
        if c.search == "bandit":
            return Bandit(c.islands, c.elites, c.afresh, c.repair or REPAIRS)
        return BestOfN() if c.search == "single" else HillClimbing(drift=c.search == "drift")

    def _drawn(self, parents: Sequence[Attempt], feedback: str, n: int, kind: Kind) -> list[str]:
        """Write programs; a next version has the imports and helpers of the file whose versions it was shown.

        The released code evaluates what is written within the file of its specification.
        """
        programs = super()._drawn(parents, feedback, n, kind)
        shown = [parent.program for parent in parents]
        if self.config.request == "plain" or any(flaw(program) for program in shown):
            return programs
        file = [self.problem.start, *shown]
        return [with_names_of(program, file, self.problem.function) for program in programs]

    @staticmethod
    def prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
        """Return the prompt: the parents as versions in ascending order, and the header of the next one.

        Programs of which one cannot be taken apart, which a repair begins with, are shown as they are.
        """
        if any(flaw(parent.program) for parent in parents):
            return chat_prompt(problem, parents, feedback)
        programs = [parent.program for parent in parents] or [problem.start]
        comments = "".join(f"# {line}\n" for line in feedback.splitlines())
        ask = f"Write `{problem.function}_v{len(programs)}` with its header, in one block of Python code."
        code = versions(problem.function, problem.parameters, programs, problem.start)
        return f"{problem.text()}\n\n```python\n{code}```\n\n{comments}{ask}"


def versions(
    function: str, parameters: Sequence[str], programs: Sequence[str], specification: str = ""
) -> str:
    """Return programs as versions of one function, and the header of the next version.

    What the specification and the programs hold besides, such as imports, comes first, each line once.

    Args:
        function: Name of the function.
        parameters: Its parameters.
        programs: Programs that define it.
        specification: The program with which the search began.
    """
    others = dict.fromkeys(_other_statements(specification, function))  # a set in the order of appearance
    functions: list[str] = []
    for number, program in enumerate(programs):
        definition = defined_last(ast.parse(program).body, function)
        if definition is not None:
            rename(definition, f"{function}_v{number}")
            functions.append(ast.unparse(definition))
        others |= dict.fromkeys(_other_statements(program, function))
    header = f"def {function}_v{len(programs)}({', '.join(parameters)}):\n"
    header += f'    """Improved version of `{function}_v{len(programs) - 1}`."""\n'
    parts = [*functions, header]
    if others:
        parts.insert(0, "\n".join(others))
    return "\n\n".join(parts)


def _other_statements(program: str, function: str) -> list[str]:
    """Return the statements of a program without the definition of the function that counts."""
    body = ast.parse(program).body
    definition = defined_last(body, function)
    return [ast.unparse(node) for node in body if node is not definition]


METHOD = Method(
    "funsearch",
    FunSearch,
    "search for a heuristic on islands of programs, with two programs in every prompt",
    "Romera-Paredes et al., Mathematical discoveries from program search with LLMs, Nature 2023",
    leaf="LLM4RL / policy",
    suggested=("openai:gpt-4o-mini", "scripted:mutator"),
    **PROGRAM,
)
