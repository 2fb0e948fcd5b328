"""Base class of methods that search for programs: a writer, a search, and a memory of earlier programs.

A program is an action and its fitness is the reward, so this is the loop of :mod:`hunch.core`:

    requests = search.ask(streams)              act: choose parents
    programs = writer.write(problem, ...)       act: write one program per stream
    trial = environment.step(program)           the design problem runs it
    search.tell(attempts)                       observe
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from hunch.core import Explanation, Memoryless, Player, State, Transition, UsageError, World
from hunch.envs.design.code import flaw, split_future, structure
from hunch.envs.design.problem import Problem, Trial
from hunch.methods.program.again import SCORES_ITSELF
from hunch.methods.program.coding import SPACING, CodingAgent, CodingConfig
from hunch.ranges import LATER, NonNegativeInt, PositiveInt, Share
from hunch.rl.rollout import StoppedError
from hunch.roles.writer.bandit import Bandit
from hunch.roles.writer.programs import (
    Attempt,
    Feedback,
    Kind,
    Request,
    Search,
    best,
    shown,
)
from hunch.roles.writer.search import RepairFirst
from hunch.sandbox.errors import printable

PROGRAM: Mapping[str, Any] = {
    **{"environments": "design problems", "acts": "program", "reads": {"raw"}},
    **{"roles": ("program",), "data": "none", "models": {"lm": ("generate",)}},
}
"""Entries that the :class:`~hunch.methods.method.Method` of each of these methods shares."""
REWARD: Mapping[str, Any] = {
    **PROGRAM,
    **{"leaf": "LLM4RL / reward", "models": {"lm": ("generate", "embed")}},
    "suggested": ("openai:gpt-4o-mini", "scripted:writer?repair=0.4"),
}
"""The same entries for methods that write rewards."""


@dataclass(frozen=True, kw_only=True)
class ProgramConfig(CodingConfig):
    """Settings of methods that search for programs."""

    feedback: Feedback = "own"
    """Feedback that the writer sees: own (the program's results: the method), or a control: blind (parents
    without feedback), shuffled (the feedback of another program) or fresh (neither parents nor feedback)."""
    retries: NonNegativeInt = 2
    """Rewrites of a program that cannot run or repeats an earlier one, before it is evaluated (ours)."""
    repair: NonNegativeInt = field(default=0, metadata=LATER)
    """How often in a row a program that fails goes back to the writer with its error, before the search goes
    on (ours; 2 suits small models). With bandit: how often at most; 0 stands for 2."""
    give_up: NonNegativeInt = 50
    """Consecutive failed programs after which the run stops with an error; 0 for never (ours)."""


@dataclass(frozen=True, kw_only=True)
class BanditConfig(ProgramConfig):
    """Settings of methods that offer the bandit over kinds of request (:mod:`hunch.roles.writer.bandit`).

    Raises:
        UsageError: if the bandit is to ask by the request of a paper, which knows one kind only.
    """

    search: str
    """The search rule; each method lists its own."""
    elites: PositiveInt = field(default=3, metadata=LATER)
    """With bandit: programs that an island keeps."""
    afresh: Share = field(default=0.25, metadata=LATER)
    """With bandit: least share of programs that are written from scratch."""

    def __post_init__(self) -> None:
        if self.search == "bandit" and self.request != "plain":
            raise UsageError(
                "--search bandit asks for new, better, repaired, joined and shorter programs, and the "
                "paper's request cannot; add --request plain."
            )


class ProgramAgent(CodingAgent):
    """An agent whose actions are programs; a subclass defines the choice of parents and the prompts.

    Arguments as for :class:`~hunch.methods.program.coding.CodingAgent`.
    """

    config_class: ClassVar[type[Any]] = ProgramConfig
    records_file: ClassVar[str] = "programs.jsonl"
    begins_with_start: ClassVar[bool] = False
    """True if the problem's initial program is evaluated first."""

    def search(self) -> Search:
        """Return a new search object, which chooses parents by the rule of the method."""
        raise NotImplementedError

    def _new_search(self) -> Search:
        """Return a new search, with repairs first if the settings say so."""
        search = self.search()
        if self.config.repair and not isinstance(search, Bandit):  # for the bandit repair is one kind of many
            return RepairFirst(search, self.config.repair)
        return search

    def begin(self, world: World, seed: int) -> None:
        """Forget all programs."""
        design_problem = world.problem if isinstance(world.problem, Problem) else None
        self.problem = design_problem or Problem(world.task, source=world.code)
        self.seed = seed
        self.attempts: list[Attempt] = []
        self.pending: dict[int, Attempt] = {}
        self.known: dict[str, int] = {}  # number of the first attempt of each structure
        self.requested = 0  # programs that the search has asked for: the number of the next attempt
        self.drawn = 0  # answers of the writer, rewrites among them
        self.seen = 0  # attempts that metrics have covered
        self.failing = 0  # attempts in a row that failed
        self.searching = self._new_search()

    def act(self, states: Sequence[State]) -> list[str]:
        """Write one program for each state."""
        opening = self.begins_with_start and self.requested == 0 and bool(self.problem.start)
        first = [Attempt(0, self.problem.start, None, group=-1)] if opening else []
        if opening:
            self.known[self._structure(self.problem.start)] = 0
        requests = self.searching.ask(len(states) - len(first), self._rng(self.requested, 0))
        written = first + self._written(requests, self.requested + len(first))
        self.requested += len(written)
        self.pending |= {state.stream: a for state, a in zip(states, written, strict=True)}
        return [attempt.program for attempt in written]

    def _written(self, requests: Sequence[Request], number: int) -> list[Attempt]:
        """Write an attempt per request; requests with the same prompt are sent together."""
        views = [
            shown(request, self.attempts, self.config.feedback, self._rng(number + i, 1))
            for i, request in enumerate(requests)
        ]
        together: dict[Any, list[int]] = {}
        for i, (request, (parents, feedback)) in enumerate(zip(requests, views, strict=True)):
            # A first line of a program has its number, and is another parent.
            key = (tuple((parent.number, parent.program) for parent in parents), feedback, request.kind)
            together.setdefault(key, []).append(i)
        programs: dict[int, str] = {}
        fresh: set[str] = set()
        for places in together.values():
            parents, feedback = views[places[0]]
            kind = requests[places[0]].kind
            if kind and not parents:  # feedback is "fresh": there is nothing to repair or to combine
                kind = "fresh"
            drawn = self._drawn(parents, feedback, len(places), kind)
            for place, program in zip(places, drawn, strict=True):
                programs[place] = self._new(program, *views[place], kind, fresh)
                fresh.add(self._structure(programs[place]))
        written = []
        for i, (request, (parents, feedback)) in enumerate(zip(requests, views, strict=True)):
            first = number + i
            if programs[i].strip():  # an answer without a program is no copy
                first = self.known.setdefault(self._structure(programs[i]), first)
            written.append(
                Attempt(
                    number + i,
                    programs[i],
                    None,
                    parents=tuple(parent.number for parent in parents),
                    shown=feedback,
                    group=request.group,
                    kind=request.kind,
                    copy_of=first if first < number + i else None,
                )
            )
        return written

    def _structure(self, program: str) -> str:
        return structure(program, *self.problem.required)

    def _drawn(self, parents: Sequence[Attempt], feedback: str, n: int, kind: Kind) -> list[str]:
        first = self.seed * SPACING + self.drawn
        self.drawn += n
        return self.programs_by(self.problem, parents, feedback, n, first, kind)

    def _new(
        self, program: str, parents: Sequence[Attempt], feedback: str, kind: Kind, fresh: set[str]
    ) -> str:
        """Return the program, or another draw if it cannot run or was tried before."""
        for _ in range(self.config.retries):
            name = self._structure(program)
            if name not in self.known and name not in fresh and not self.problem.flaw(program):
                return program
            program = self._drawn(parents, feedback, 1, kind)[0]
        return program

    def observe(self, transitions: Sequence[Transition]) -> None:
        """Report the results of the trials to the search."""
        for t in sorted(transitions, key=lambda t: self.pending[t.stream].number):
            attempt = self.pending.pop(t.stream).after(_trial(t))
            self.failing = self.failing + 1 if attempt.fitness is None else 0
            self._tell(attempt)

    def _tell(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        self.searching.tell([attempt], self._rng(attempt.number, 2))

    def learn(self) -> dict[str, float]:
        """Return metrics of the programs since the last call, with the best fitness so far.

        ``copied_programs`` is the share that says the same as an earlier program but for names.

        Raises:
            StoppedError: if too many programs in a row failed. A resumed run continues with new programs.
        """
        new = self.attempts[self.seen :]
        self.seen = len(self.attempts)
        if self.config.give_up and self.failing >= self.config.give_up:
            reasons = Counter(attempt.error for attempt in self.attempts[-self.failing :]).most_common(3)
            why_failed = "; ".join(
                f"{'once' if n == 1 else f'{n} times'} {printable(why, 200)}" for why, n in reasons
            )
            raise StoppedError(f"The last {self.failing} programs all failed: {why_failed}.")
        if not new:
            return {}
        top = best(self.attempts)
        metrics = {
            "failed_programs": sum(attempt.fitness is None for attempt in new) / len(new),
            "copied_programs": sum(attempt.copy_of is not None for attempt in new) / len(new),
        }
        if top is not None:
            metrics["best"] = float(top.fitness or 0.0)
        return metrics

    def player(self, seed: int) -> Player:
        """Return a player that submits the best program so far, or the first one if all failed."""
        top = best(self.attempts)
        program = top.program if top else self.problem.start
        number = SPACING * (self.seed + 1) - 1
        written = program or self.programs_by(self.problem, (), "", 1, number)[0]
        return Memoryless(lambda states, rng: [written] * len(states))

    def explain(self, state: State) -> Explanation:
        """Return the best program so far."""
        top = best(self.attempts)
        return Explanation(note=f"fitness {top.fitness:g}\n{top.program}" if top else "no program yet")

    def records(self) -> list[dict[str, Any]]:
        """Return one record per program: text, fitness, feedback, error, parents and the feedback shown."""
        return [attempt.line() for attempt in self.attempts]

    def files(self) -> dict[str, str]:
        """Return the best program so far, as ``best.py``, which scores itself when it is run.

        A best text that is no Python, where any text may be a program, is ``best.txt``.
        """
        top = best(self.attempts)
        if top is None:
            return {}
        if flaw(top.program):
            return {"best.txt": top.program}
        ahead, program = split_future(top.program)
        head = f"# Program {top.number}, fitness {top.fitness}\n{ahead}"
        return {"best.py": f"{head}{SCORES_ITSELF}{program}"}

    def state_dict(self) -> dict[str, Any]:
        """Return the attempts, from which the search is rebuilt."""
        # A run that gave up tries as many programs again when it is taken up; a killed one counts on.
        gave_up = 0 < self.config.give_up <= self.failing
        return {
            "attempts": self.records(),
            "counters": [self.requested, self.drawn, self.seen],
            "failing": 0 if gave_up else self.failing,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.attempts = []
        self.pending = {}
        self.searching = self._new_search()
        for line in state["attempts"]:
            self._tell(Attempt.read(line))
        self.known = {}
        for attempt in self.attempts:
            if attempt.program.strip():
                self.known.setdefault(self._structure(attempt.program), attempt.number)
        self.requested, self.drawn, self.seen = state["counters"]
        self.failing = state.get("failing", 0)  # checkpoints of earlier versions have none

    def _rng(self, number: int, use: int) -> np.random.Generator:
        """Return a separate random generator per attempt, so that none has to be saved."""
        return np.random.default_rng([self.seed, number, use])


def _trial(t: Transition) -> Trial:
    """Return the trial of a program, from the environment's state or else from its reward."""
    if isinstance(t.next_state.raw, Trial):
        return t.next_state.raw
    failed = np.isnan(t.reward)
    return Trial(None if failed else t.reward, t.event, error=t.event if failed else "")
