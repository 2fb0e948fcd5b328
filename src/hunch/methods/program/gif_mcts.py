"""GIF-MCTS: a world model as code, found by tree search over programs (Dainese et al., NeurIPS 2024).

    from a description and recorded transitions, until all are predicted or no calls are left
        descend from the root by value + c sqrt(ln N / (n + 1)), where N counts the visits of the node and
            n those of the child; a new child of a kind has an expected value, and n is the number of
            children of its kind
        carry out the operation at which the descent ends:
            generate    write a program that continues the node's first lines, two more than its parent's
            improve     show the program with one wrongly predicted transition; explain, then rewrite it
            fix         show it with the error that it raised; explain, then rewrite it. It is the only
                        operation on a program that failed; at most three in a row
        fitness = the weighted share of transitions that the new program predicts correctly
        add the fitness to the values of all nodes on the path

The expected value of a new child mixes the mean of all children of its kind with that of this node's
children, with weights fitted to the results so far. A program that failed has the value 0.99 with all its
fixes left, falling to 0 as they are used up; once fixed, it has the value of the fixed program.

The baselines use the same prompts and writer: programs from scratch (single; the first of them is
zero-shot), one lineage (linear), and the rule of WorldCoder, which draws the program to refine from Beta
distributions (thompson).

A call of the model writes one program. Once all transitions are predicted, the model is no longer asked, and
the winner is submitted again.

Source: Dainese et al., "Generating Code World Models with Large Language Models Guided by Monte Carlo Tree
Search", NeurIPS 2024, and its released code. Departures: a failed program without fixes left is not visited
again (the released code may rewrite it); weights are fitted with earlier children only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log, sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from hunch.core import UsageError
from hunch.envs.design.code import lines_of
from hunch.envs.design.problem import Problem
from hunch.methods.method import Method
from hunch.methods.program.agent import PROGRAM, ProgramAgent, ProgramConfig
from hunch.ranges import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from hunch.rl.evaluator import largest
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
        numbers = range(number, number + len(requests))
        return [Attempt(n, top.program, None, parents=(top.number,), group=-1) for n in numbers]

    def _tell(self, attempt: Attempt) -> None:
        """Note an attempt.

        Raises:
            UsageError: if its fitness is above 1, so that the search would take it for perfect.
        """
        if attempt.fitness is not None and attempt.fitness > 1.0 + 1e-6:  # a mean may be rounded up
            raise UsageError(
                "gif-mcts needs a problem whose fitness is at most 1, such as hunch/WorldModelCode-v0, and a "
                f"program has {attempt.fitness:g}: use code-policy or funsearch."
            )
        super()._tell(attempt)

    @staticmethod
    def prompt(problem: Problem, parents: Sequence[Attempt], feedback: str) -> str:
        """Return the prompt of the operation, which depends on the parent: generate, improve or fix."""
        if not parents or (not feedback and parents[-1].fitness is not None):
            return chat_prompt(problem, parents, feedback)
        last = parents[-1]
        ask = f"{problem.requested_functions} in one block of Python code"
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


# ---- the tree ---------------------------------------------------------------------------------------------

KINDS = ("generate", "improve", "fix")
"""Operations on a node; ``Request.group`` is an index into this tuple."""
ROOT = -1


@dataclass(eq=False)
class Node:
    """A program of the tree.

    Attributes:
        attempt: The program; None at the root.
        kind: The operation that made the program.
        parent: The parent node; None at the root.
        lines: Number of first lines that are the node's state.
        fixes: Number of fixes left while the program fails.
        failed: True if the program fails and no fix has been tried.
        closed: True if no operation on the node is left.
        total: Sum of the values of all visits.
        visits: Number of visits.
        children: Child nodes, oldest first.
    """

    attempt: Attempt | None = None
    kind: str = ""
    parent: Node | None = None
    lines: int = 0
    fixes: int = 0
    failed: bool = False
    closed: bool = False
    total: float = 0.0
    visits: int = 0
    children: list[Node] = field(default_factory=list)

    @property
    def value(self) -> float:
        """The mean value of the visits."""
        return self.total / max(self.visits, 1)

    def of(self, kind: str) -> list[Node]:
        """Return the children that an operation made."""
        return [child for child in self.children if child.kind == kind]


@dataclass
class Expectation:
    """The expected value of a new child: a mix of the means over all children of its kind and over siblings.

    Attributes:
        total: Sum of all values so far, including an initial value.
        count: Number of values, including those that the initial value stands for.
        weights: Weights of the two means, fitted by gradient descent with rate 1 / n.
        n: One plus the number of results, including those that the initial value stands for.
    """

    total: float
    count: float
    n: float
    weights: tuple[float, float] = (0.5, 0.5)

    def __call__(self, siblings: Sequence[Node]) -> float:
        """Return the expected value, from 0 to 1."""
        return min(max(self._mixed(siblings), 0.0), 1.0)

    def _mixed(self, siblings: Sequence[Node]) -> float:
        """Return (a E + b S) / (a + b): E is the mean over all children of the kind, S that over siblings."""
        everywhere = self.total / self.count
        if not siblings:
            return everywhere
        here = float(np.mean([node.value for node in siblings]))
        a, b = self.weights
        return (a * everywhere + b * here) / (a + b)

    def learn(self, siblings: Sequence[Node], value: float) -> None:
        """Update weights and mean with the value of a child; ``siblings`` are the earlier children."""
        if siblings:
            # One step down the gradient of (mixed - value)^2, with rate 1 / n:
            #     d mixed / d a = (E - mixed) / (a + b),   d mixed / d b = (S - mixed) / (a + b)
            everywhere = self.total / self.count
            here = float(np.mean([node.value for node in siblings]))
            mixed = self._mixed(siblings)
            a, b = self.weights
            slope = 2 * (mixed - value) / (a + b) / self.n
            self.weights = (a - slope * (everywhere - mixed), b - slope * (here - mixed))
        self.total += value
        self.count += 1
        self.n += 1


class ProgramTree:
    """The search of GIF-MCTS; its state can be rebuilt from the attempts.

    Args:
        lines: First lines that a node adds to those of its parent.
        c: Weight of the exploration term.
        fixes: Maximum consecutive fixes of a program.
        initial: Initial values of generate, improve and fix, each counting as two results.
    """

    def __init__(
        self,
        lines: int = 2,
        c: float = 0.1,
        fixes: int = 3,
        initial: tuple[float, float, float] = (0.5, 0.55, 0.5),
    ) -> None:
        self.lines = lines
        self.c = c
        self.fixes = fixes
        self.expected = {
            kind: Expectation(total=2 * value, count=2, n=3)
            for kind, value in zip(KINDS, initial, strict=True)
        }
        self.root = Node(visits=1, fixes=fixes)
        self.nodes = {ROOT: self.root}

    def ask(self, n: int, rng: np.random.Generator) -> list[Request]:
        """Choose the next ``n`` operations; operations in progress count as visits."""
        asked: Counter[tuple[Node, str]] = Counter()
        return [self._request(*self._select(asked, rng)) for _ in range(n)]

    def _request(self, node: Node, kind: str) -> Request:
        """Return the request of an operation; to generate, the parent is the first lines of the program."""
        group = KINDS.index(kind)
        if node.attempt is None:
            return Request(group=group)
        if kind != "generate":
            return Request((node.attempt,), group)
        first_lines = "\n".join(lines_of(node.attempt.program)[: node.lines])
        beginning = replace(node.attempt, program=first_lines, fitness=None, error="", feedback="")
        return Request((beginning,), group)

    def _select(self, asked: Counter[tuple[Node, str]], rng: np.random.Generator) -> tuple[Node, str]:
        """Descend by the upper confidence bound until it chooses a new child; return its parent and kind."""
        node: Node = self.root
        while True:
            options = self._options(node, asked)
            if not options:  # all that is left here is in progress
                return self.root, "generate"
            _, chosen = options[largest([score for score, _ in options], rng)]
            if isinstance(chosen, str):
                asked[node, chosen] += 1
                return node, chosen
            node = chosen

    def _options(self, node: Node, asked: Counter[tuple[Node, str]]) -> list[tuple[float, Node | str]]:
        """Return children, and kinds of new children, with their upper confidence bounds."""
        going_on = [child for child in node.children if not child.closed]
        options: list[tuple[float, Node | str]] = [
            (child.value + self._bonus(node, child.visits), child) for child in going_on
        ]
        for kind in self._kinds(node):
            siblings = node.of(kind)
            pending = asked[node, kind]
            if kind == "fix" and pending:
                continue
            bonus = self._bonus(node, len(siblings) + pending)
            options.append((self.expected[kind](siblings) + bonus, kind))
        return options

    def _kinds(self, node: Node) -> tuple[str, ...]:
        """Return the operations that can be tried at a node."""
        if node.attempt is None:
            return ("generate",)
        if node.attempt.fitness is None:
            return () if node.children or not node.fixes else ("fix",)
        whole = node.lines >= len(lines_of(node.attempt.program))
        return ("improve",) if whole else ("generate", "improve")

    def _bonus(self, node: Node, visits: int) -> float:
        """Return c sqrt(ln N / (n + 1)), the exploration term of UCT."""
        return self.c * sqrt(log(max(node.visits, 1)) / (visits + 1))

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Add nodes for the attempts, and add their values to all nodes on the path."""
        for attempt in attempts:
            if attempt.group >= 0:
                self._add(attempt, KINDS[attempt.group])

    def _add(self, attempt: Attempt, kind: str) -> None:
        """Add the node of a program, and the value of the program to the nodes above."""
        parent = self.nodes.get(attempt.parents[-1] if attempt.parents else ROOT, self.root)
        if parent.attempt is not None and parent.attempt.fitness is None:
            kind = "fix"  # a repair that was not asked for here (--repair) has the group of what it repairs
        failed = attempt.fitness is None
        self.expected[kind].learn(parent.of(kind), attempt.fitness or 0.0)
        fixes_left = parent.fixes - 1 if failed and kind == "fix" else self.fixes
        node = Node(
            attempt,
            kind,
            parent,
            lines=parent.lines + self.lines,
            fixes=max(fixes_left, 0),
            failed=failed,
        )
        node.closed = failed and node.fixes == 0
        parent.children.append(node)
        self.nodes[attempt.number] = node
        self._back_up(node)
        if parent.failed:
            self._settle(parent, node)

    def _back_up(self, node: Node) -> None:
        """Add a fitness on the whole path; a failure only counts as a visit."""
        assert node.attempt is not None
        node.visits = 1
        node.total = node.attempt.fitness or 0.0
        if node.failed:
            node.total = self._hope(node.fixes)
        above: Node | None = node.parent
        while above is not None:
            above.total += above.value if node.failed else node.total
            above.visits += 1
            above = above.parent

    def _hope(self, fixes: int) -> float:
        """Return the value of a failed program, given the fixes left."""
        return 0.99 * fixes / self.fixes if self.fixes else 0.0

    def _settle(self, failed: Node, fix: Node) -> None:
        """Pass the value of a fix on to the programs that it fixed."""
        node: Node | None = failed
        while node is not None and node.attempt is not None:
            node.failed = False
            node.closed = fix.closed
            value = 0.0 if fix.closed else fix.value
            node.total = value * node.visits
            if node.kind != "fix":
                return
            node = node.parent


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
