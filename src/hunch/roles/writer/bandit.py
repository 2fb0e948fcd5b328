"""A search for small language models as writers: a bandit over kinds of request, and an archive of elites.

What helps differs from model to model and from problem to problem: with some, eight repairs in ten fail and
revisions are worse than new programs. So the search learns by trying which kind of request pays. As asking
afresh is one of the kinds, it is best of n where nothing else pays.

    elites of an island: its fittest programs, one for each outcome (the scores on all inputs)
    for each request
        island i in turn
        with probability f: k = fresh
        else: theta_k ~ Beta(1 + s_k, 1 + n_k - s_k) for each kind k that can be asked; k = argmax theta_k
        fresh     no parents
        revise    an elite of the island, the r-th best with probability proportional to 1 / r
        repair    the oldest program that failed, unless it was repaired too often
        combine   an elite of another island and one of this one, the fitter last
        simplify  the longest elite of the island
    for each attempt of kind k on island i
        n_k += 1, and s_k += 1 if it becomes an elite of i: new outcome, and fitter than the last elite
        a copy (same program but for names, or same outcome as an elite) is no elite

The combination of elites of two islands is the only way from one to the other, so the islands explore apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from hunch.roles.writer.programs import Attempt, Kind, Request, fitness_of, outcome_of
from hunch.roles.writer.search import Repairs

REPAIRS: Final = 2
"""Repairs of a program, one after the other, unless the settings name another number (ours)."""


class Elites:
    """The fittest programs of an island, one for each outcome.

    Args:
        most: Maximum number of programs.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.programs: list[Attempt] = []  # fittest first

    def admit(self, attempt: Attempt) -> bool:
        """Return whether an attempt becomes an elite, and keep it then."""
        if attempt.fitness is None:
            return False
        if outcome_of(attempt) in map(outcome_of, self.programs):
            return False
        # An equal fitness does not replace an elite: sorting is stable, and the latest stands last.
        ranked = sorted([*self.programs, attempt], key=lambda elite: -fitness_of(elite))
        self.programs = ranked[: self.most]
        return attempt in self.programs

    def drawn(self, rng: np.random.Generator) -> Attempt:
        """Draw a program: that of rank r, from 1, with a probability proportional to 1 / r."""
        weights = 1.0 / np.arange(1, len(self.programs) + 1)
        return self.programs[int(rng.choice(len(self.programs), p=weights / weights.sum()))]


class Bandit:
    """The search; its state can be rebuilt from the attempts.

    Args:
        islands: Number of islands.
        elites: Programs that an island keeps.
        fresh: Least share of requests for a program from scratch, 0 to 1.
        repairs: Maximum number of repairs of a program, one after the other.
    """

    def __init__(
        self, islands: int = 2, elites: int = 3, fresh: float = 0.25, repairs: int = REPAIRS
    ) -> None:
        self.islands = [Elites(elites) for _ in range(islands)]
        self.fresh = fresh
        self.repairs = Repairs(repairs)
        self.asked: Counter[Kind] = Counter()  # n_k
        self.paid: Counter[Kind] = Counter()  # s_k
        self.received = 0

    def ask(self, n: int, rng: np.random.Generator) -> list[Request]:
        """Return n requests; the islands take turns."""
        broken = list(self.repairs.broken)
        return [self._request((self.received + i) % len(self.islands), broken, rng) for i in range(n)]

    def _request(self, island: int, broken: list[Attempt], rng: np.random.Generator) -> Request:
        """Draw the kind of a request, and its parents; what is repaired leaves ``broken``."""
        here = self.islands[island]
        others = [other for i, other in enumerate(self.islands) if i != island and other.programs]
        possible: list[Kind] = ["fresh"]
        if here.programs:
            possible += ["revise", "simplify"]
        if broken:
            possible.append("repair")
        if here.programs and others:
            possible.append("combine")

        kind: Kind = "fresh"
        if rng.random() >= self.fresh:
            thetas = [rng.beta(1 + self.paid[one], 1 + self.asked[one] - self.paid[one]) for one in possible]
            kind = possible[int(np.argmax(thetas))]

        parents: tuple[Attempt, ...] = ()
        match kind:
            case "revise":
                parents = (here.drawn(rng),)
            case "simplify":
                parents = (max(here.programs, key=lambda elite: len(elite.program)),)
            case "repair":
                parents = (broken.pop(0),)
            case "combine":
                other = others[int(rng.integers(len(others)))]
                parents = tuple(sorted((other.drawn(rng), here.drawn(rng)), key=fitness_of))
        return Request(parents, island, kind)

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Note which kinds of request paid, what failed, and the elites."""
        for attempt in attempts:
            self.received += 1
            paid = attempt.copy_of is None and self._admit(attempt)
            if attempt.kind:  # not the problem's own program
                self.asked[attempt.kind] += 1
                self.paid[attempt.kind] += paid
            self.repairs.note(attempt, again=attempt.copy_of is None)

    def _admit(self, attempt: Attempt) -> bool:
        islands = self.islands if attempt.group < 0 else [self.islands[attempt.group]]
        admitted = [island.admit(attempt) for island in islands]  # each of them is to see it
        return any(admitted)
