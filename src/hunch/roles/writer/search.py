"""Searches over programs, which choose the parents of the next programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from hunch.core import UsageError
from hunch.numbers import softmax
from hunch.roles.writer.programs import Attempt, Request, Search, best, fitness_of, outcome_of

Within = Literal["short", "any", "latest"]
"""Which program is drawn from a cluster of equal scores: preferably short, any, or the latest."""


class BestOfN:
    """Every program is written from scratch, and the best one counts: the control of all other searches."""

    def ask(self, n: int, rng: np.random.Generator) -> list[Request]:
        """Return requests without parents."""
        return [Request()] * n

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Do nothing: :func:`~hunch.roles.writer.programs.best` finds the best."""


class OneParent:
    """Base class of searches in which all next programs have the same parent."""

    parent: Attempt | None = None

    def ask(self, n: int, rng: np.random.Generator) -> list[Request]:
        """Return requests with the parent, if there is one yet."""
        return [Request((self.parent,) if self.parent else ())] * n


class Refinement(OneParent):
    """Linear refinement: each program is written from the one before, whether that failed or not."""

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """The last attempt is the next parent."""
        self.parent = attempts[-1] if attempts else self.parent


class Greedy(OneParent):
    """Search by batches: the best program of a batch is the parent of the whole next batch (Eureka).

    If a whole batch failed, the parent and thus the request stay the same.

    Args:
        size: Programs per batch.
        keep: The parent of the next batch is the best program of all batches, the latest among equals.
    """

    def __init__(self, size: int, *, keep: bool = False) -> None:
        self.size = size
        self.keep = keep
        self.batch: list[Attempt] = []

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Add attempts, and close the batch when it is full."""
        for attempt in attempts:
            self.batch.append(attempt)
            if len(self.batch) == self.size:
                if self.keep:
                    self._keep_best()
                else:
                    self.parent = best(self.batch) or self.parent
                self.batch = []

    def _keep_best(self) -> None:
        """Take the best program of the batch as the parent, unless the present one is better."""
        for attempt in self.batch:
            if attempt.fitness is not None and attempt.fitness >= fitness_of(self.parent):
                self.parent = attempt


class HillClimbing(OneParent):
    """The best program so far is the parent.

    Args:
        drift: An attempt of equal fitness becomes the parent, too, so that the search moves on plains. With a
            writer that copies, it stands still on copies instead.
    """

    def __init__(self, *, drift: bool = False) -> None:
        self.drift = drift

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Make an attempt the parent if it is better than the current one, or equal with drift."""
        for attempt in attempts:
            if attempt.fitness is None:
                continue
            better = attempt.fitness > fitness_of(self.parent)
            equal = attempt.fitness == fitness_of(self.parent)
            if better or (self.drift and equal):
                self.parent = attempt


class Repairs:
    """The programs that failed and may be repaired.

    Args:
        times: Maximum number of repairs of one program, one after the other.
    """

    def __init__(self, times: int) -> None:
        self.times = times
        self.broken: list[Attempt] = []  # oldest first
        self.made: dict[int, int] = {}  # by the number of an attempt: how many repairs led to it

    def note(self, attempt: Attempt, *, again: bool = True) -> None:
        """Note what an attempt repairs, and with ``again`` whether it has to be repaired itself."""
        waiting = {broken.number for broken in self.broken}
        repaired = attempt.parents[-1] if attempt.parents and attempt.parents[-1] in waiting else None
        self.broken = [broken for broken in self.broken if broken.number != repaired]
        made = 0 if repaired is None else self.made.get(repaired, 0) + 1
        self.made[attempt.number] = made
        if again and attempt.fitness is None and attempt.program.strip() and made < self.times:
            self.broken.append(attempt)


class RepairFirst:
    """A search around another one: a program that failed goes back to the writer with its error first.

    The repaired program is an attempt of its own with its own score; the failed one keeps none. Repairs are
    chosen from what was told alone, so a resumed run makes the same requests.

    Args:
        search: Chooses the parents when nothing is to be repaired.
        times: Maximum number of repairs of one program, one after the other.
    """

    def __init__(self, search: Search, times: int) -> None:
        self.search = search
        self.repairs = Repairs(times)

    def ask(self, n: int, rng: np.random.Generator) -> list[Request]:
        """Return requests to repair what is broken, then those of the other search."""
        repairs = [Request((broken,), broken.group) for broken in self.repairs.broken[:n]]
        return repairs + self.search.ask(n - len(repairs), rng)

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Note what failed, and tell the other search everything."""
        for attempt in attempts:
            self.repairs.note(attempt)
        self.search.tell(attempts, rng)


SCRATCH = -1
"""The number that stands for writing from scratch; programs have the numbers of their attempts."""


class Thompson:
    """Thompson sampling by Beta distributions: refine a program, or write one from scratch.

    This is the rule of WorldCoder's released code (Tang et al. 2024). A program with fitness rho, from 0
    to 1, has Beta(1 + C rho, 1 + C (1 - rho)) at first, and Beta(1, 1) for writing from scratch. Every
    imperfect program that results adds one to the second parameter. A program that failed, has fitness 0
    or exists already is not refined.

    Args:
        weight: C, the weight of the fitness.
    """

    def __init__(self, weight: float = 5.0) -> None:
        self.weight = weight
        self.programs: dict[int, Attempt] = {}
        self.failures: Counter[int] = Counter()

    def ask(self, n: int, rng: np.random.Generator) -> list[Request]:
        """Draw a parent, or none, for each request."""
        drawn = [self._drawn(rng) for _ in range(n)]
        return [Request(() if number == SCRATCH else (self.programs[number],)) for number in drawn]

    def _drawn(self, rng: np.random.Generator) -> int:
        draws = {number: rng.beta(*self.beta(number)) for number in (SCRATCH, *self.programs)}
        return max(draws, key=lambda number: draws[number])

    def beta(self, number: int) -> tuple[float, float]:
        """Return the parameters of the distribution of a program, or of ``SCRATCH``."""
        failures = self.failures[number]
        if number == SCRATCH:
            return 1, 1 + failures
        share = self.programs[number].fitness or 0.0
        return 1 + self.weight * share, 1 + self.weight * (1 - share) + failures

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Add programs, and count imperfect ones against their parents, if they were written from any.

        Raises:
            UsageError: if a fitness is above 1.
        """
        for attempt in attempts:
            if fitness_of(attempt) > 1.0 + 1e-6:  # a mean of shares may be rounded up
                raise UsageError(
                    "Thompson sampling needs a fitness from 0 to 1, such as that of a world model, and a "
                    f"program has {attempt.fitness:g}: choose another search."
                )
            if fitness_of(attempt) < 1.0 and attempt.group >= 0:
                self.failures.update(attempt.parents or (SCRATCH,))
            known = {program.program for program in self.programs.values()}
            if fitness_of(attempt) > 0.0 and attempt.program not in known:
                self.programs[attempt.number] = attempt


LARGEST = 1e307
"""The largest logit of a cluster, so that the difference of two logits is a number."""


@dataclass
class Island:
    """An isolated population of programs, in clusters of equal scores."""

    clusters: dict[tuple[float, ...], list[Attempt]] = field(default_factory=dict)
    size: int = 0

    def add(self, attempt: Attempt) -> None:
        """Add a program that did not fail."""
        self.clusters.setdefault(outcome_of(attempt), []).append(attempt)
        self.size += 1

    @property
    def best(self) -> Attempt | None:
        """Return the fittest program."""
        return best(attempt for cluster in self.clusters.values() for attempt in cluster)


class Islands:
    """Search over islands with clusters (FunSearch, Romera-Paredes et al. 2023).

    A request draws an island, then clusters with replacement by a softmax over their fitness, and from each a
    program, by default short ones more often. Parents are in ascending order of fitness. The temperature of
    the softmax falls from ``temperature`` to 0 over ``period`` programs of the island, and starts again.
    After every ``reset_every`` attempts the worse half of the islands is emptied, and each restarts with the
    best program of a remaining one. Attempts are counted instead of hours, so that a run can be repeated.

    Args:
        islands: Number of islands.
        parents: Number of parents per request.
        temperature: Temperature of the softmax over clusters, in units of fitness.
        period: Programs per island over which the temperature falls.
        reset_every: Attempts between resets; 0 for none.
        samples: Programs written per request.
        within: Drawn from a cluster: preferably ``short`` programs, ``any``, or the ``latest``.
    """

    def __init__(
        self,
        islands: int = 10,
        parents: int = 2,
        temperature: float = 0.1,
        period: int = 30_000,
        reset_every: int = 170_000,
        samples: int = 4,
        within: Within = "short",
    ) -> None:
        self.islands = [Island() for _ in range(islands)]
        self.parents, self.temperature, self.period = parents, temperature, period
        self.reset_every, self.samples, self.within = reset_every, samples, within
        self.trials_told = 0

    def ask(self, n: int, rng: np.random.Generator) -> list[Request]:
        """Draw requests; equal ones follow each other if several programs are written per request."""
        return [
            request for _ in range(0, n, self.samples) for request in [self._request(rng)] * self.samples
        ][:n]

    def _request(self, rng: np.random.Generator) -> Request:
        group = int(rng.integers(len(self.islands)))
        island = self.islands[group]
        if not island.clusters:
            return Request(group=group)
        clusters = list(island.clusters.values())
        falling = self.temperature * (1 - (island.size % self.period) / self.period)
        fitness = np.array([fitness_of(cluster[0]) for cluster in clusters])
        with np.errstate(over="ignore"):
            logits = fitness / max(falling, 1e-9)
        chances = softmax(np.clip(logits, -LARGEST, LARGEST))
        drawn = rng.choice(len(clusters), size=min(self.parents, len(clusters)), p=chances)
        chosen = [_member(clusters[int(i)], self.within, rng) for i in drawn]
        return Request(tuple(sorted(chosen, key=fitness_of)), group)

    def tell(self, attempts: Sequence[Attempt], rng: np.random.Generator) -> None:
        """Add programs to their islands; the first program is added to all islands."""
        for attempt in attempts:
            self.trials_told += 1
            if attempt.fitness is not None:
                everywhere = range(len(self.islands))
                for group in everywhere if attempt.group < 0 else (attempt.group,):
                    self.islands[group].add(attempt)
            if self.reset_every and self.trials_told % self.reset_every == 0:
                self._reset(rng)

    def _reset(self, rng: np.random.Generator) -> None:
        noise = rng.permutation(len(self.islands))  # breaks ties
        order = sorted(range(len(self.islands)), key=lambda i: (fitness_of(self.islands[i].best), noise[i]))
        worse, better = order[: len(order) // 2], order[len(order) // 2 :]
        for group in worse:
            self.islands[group] = Island()
            founder = self.islands[better[int(rng.integers(len(better)))]].best
            if founder is not None:
                self.islands[group].add(founder)


def _member(cluster: Sequence[Attempt], within: Within, rng: np.random.Generator) -> Attempt:
    """Draw a program of a cluster: the latest, any, or rather a short one, with softmax(-relative length)."""
    if within == "latest":
        return cluster[-1]
    lengths = np.array([len(attempt.program) for attempt in cluster], dtype=float)
    excess = np.zeros(len(cluster))
    if within == "short":
        excess = (lengths - lengths.min()) / (lengths.max() + 1e-6)
    return cluster[int(rng.choice(len(cluster), p=softmax(-excess)))]
