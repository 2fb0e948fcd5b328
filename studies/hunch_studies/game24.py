"""The Game of 24: Q-learning restricted to recorded proposals of GPT-4, or to proposals without a model.

Every puzzle is learnt separately, from its first step, with a table of Q initialised to the best return: the
greedy agent then tries everything that is not known to fail, and needs no other exploration. Methods differ
only in the prior. A move is identified with the numbers that it leaves, so moves with the same result count
once for every method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from math import comb
from pathlib import Path
from typing import TypeAlias

import numpy as np

from hunch.core import State
from hunch.lm import load
from hunch.rl.statistics import Estimate, over_pairs
from hunch.rl.tabular import QTable
from hunch.roles.prior.similarity import SimilarityPrior
from hunch_studies.recordings.tree_of_thought import Tree, tree
from hunch_studies.study import Part, Scale, Study, kept
from hunch_studies.worlds.game24.env import Game24
from hunch_studies.worlds.game24.rules import TARGET, numbers, operations, shown, solvable

SEEDS = 10
BUDGETS = (3, 30, 100, 300, 1_000)
"""Numbers of steps after which the share of solved puzzles is reported; an episode has three."""
WON = str(TARGET)
ALL, STRICT, PRIOR = "all legal operations", "GPT-4, dead ends elsewhere", "GPT-4"

Candidates: TypeAlias = Callable[[str], tuple[str, ...]]
"""Proposals for numbers left, given as the numbers after each proposal; empty in a dead end."""
Runs: TypeAlias = Mapping[str, Sequence[int | None]]
"""Steps to the first solution by puzzle, for each seed; None if the candidates contain no solution."""
Score: TypeAlias = Callable[[str], Sequence[float]]
"""A rule's score of each successor of numbers left."""


@cache
def successors(left: str) -> tuple[str, ...]:
    """Return the results of legal operations, each once, in the order of the operations."""
    return tuple(dict.fromkeys(map(shown, operations(numbers(left)).values()))) if " " in left else ()


@cache
def good(left: str) -> frozenset[str]:
    """Return the successors from which 24 can be reached."""
    ways = (after for after in successors(left) if " " in after and solvable(numbers(after)))
    return frozenset((*ways, *(after for after in successors(left) if after == WON)))


def steps_to_solve(puzzle: str, candidates: Candidates, rng: np.random.Generator) -> int | None:
    """Play a puzzle by Q-learning until it is solved, or nothing is left to try.

    Args:
        puzzle: Numbers.
        candidates: Candidates of the agent.
        rng: Random generator for ties.

    Returns:
        Steps until 24 was first reached; None if the candidates contain no solution.
    """
    table, steps, own = QTable(gamma=1.0, learning_rate=1.0, initial=1.0), 0, cache(candidates)
    while own(puzzle) and table.values(puzzle, own(puzzle)).max() > 0:
        left = puzzle
        while own(left):
            q, steps = table.values(left, own(left)), steps + 1
            after = own(left)[int(rng.choice(np.flatnonzero(q == q.max())))]
            if after == WON:
                return steps
            table.update(left, after, 0.0, after, own(after))
            left = after
    return None


# ---- what fills the role of the prior -----------------------------------------------------------------


class Recorded:
    """Recorded proposals of GPT-4, and the priors that are compared with them.

    In states without a record, every prior except one proposes all operations.

    Args:
        found: The recorded search; proposals with the same result count once.
    """

    def __init__(self, found: Tree) -> None:
        self.puzzles = [shown(puzzle) for puzzle in found.puzzles]
        self.proposals = {
            shown(left): tuple(dict.fromkeys(shown(operations(left)[text]) for text in texts))
            for left, texts in found.proposals.items()
        }
        counts = {len(left.split()) for left in self.proposals if good(left)}
        self.enough = {n: self._enough(n) for n in sorted(counts, reverse=True)}

    def fillings(self, seed: int) -> dict[str, Candidates]:
        """Return the proposals of a method; only random proposals depend on the seed."""
        return {
            ALL: successors,
            STRICT: lambda left: self.proposals.get(left, ()),
            PRIOR: lambda left: self.proposals.get(left, successors(left)),
            "random k": partial(self._best, partial(at_random, seed=seed)),
            "words": partial(self._best, by_words),
            "arithmetic": partial(self._best, arithmetic),
            "arithmetic, recall as GPT-4's": partial(self._best, arithmetic, enough=self.enough),
        }

    def _best(self, score: Score, left: str, enough: Mapping[int, int] | None = None) -> tuple[str, ...]:
        """Return the best successors by a rule, as many as GPT-4 proposed, or the given numbers of them."""
        if left not in self.proposals:
            return successors(left)
        k = len(self.proposals[left]) if enough is None else enough.get(len(left.split()))
        return ranked(left, score(left))[:k]

    def states(self, n: int) -> list[str]:
        """Return the states with this number of numbers left from which 24 can be reached."""
        return [left for left in self.proposals if len(left.split()) == n and good(left)]

    def recall(self, n: int, candidates: Candidates) -> float:
        """Return the share of these states in which some candidate keeps 24 reachable."""
        return float(np.mean([bool(good(left) & set(candidates(left))) for left in self.states(n)]))

    def _enough(self, n: int) -> int:
        """Return how many moves the arithmetic rule needs for GPT-4's recall."""
        places = [
            next(i for i, after in enumerate(ranked(left, arithmetic(left)), 1) if after in good(left))
            for left in self.states(n)
        ]
        hits = round(self.recall(n, lambda left: self.proposals[left]) * len(places))
        return sorted(places)[hits - 1] if hits else 1


def ranked(left: str, scores: Sequence[float]) -> tuple[str, ...]:
    """Return successors from the best to the worst; equals keep their order."""
    every = successors(left)
    return tuple(every[i] for i in np.argsort(-np.asarray(scores), kind="stable"))


def at_random(left: str, seed: int) -> Sequence[float]:
    """Return scores drawn once for numbers left and seed."""
    rng = np.random.default_rng([seed, *left.encode()])
    return list(rng.random(len(successors(left))))


@cache
def arithmetic(left: str) -> Sequence[float]:
    """A rule of thumb: no fractions and nothing below 1; then divisors of 24; then numbers near 24."""
    scores = []
    for after in successors(left):
        values = [Fraction(x) for x in after.split()]
        odd = sum(x.denominator > 1 or x < 1 for x in values)
        dividing = sum(x >= 1 and TARGET % x == 0 for x in values)
        scores.append(-10.0 * odd + dividing / len(values) - float(abs(TARGET - max(values))) / 1000)
    return scores


@cache
def by_words(left: str) -> Sequence[float]:
    """Similarity of the words of a move to those of the task and the numbers left: the lexical control."""
    texts: dict[str, str] = {}
    for text, after in operations(numbers(left)).items():
        texts.setdefault(shown(after), text)
    state = State(f"Numbers left: {left}", Game24.task, tuple(texts[after] for after in successors(left)))
    return [float(p) for p in _words().probabilities([state])[0]]


@cache
def _words() -> SimilarityPrior:
    return SimilarityPrior(load("words", cache=None))


# ---- what comes of it -----------------------------------------------------------------------------------


def play(found: Recorded, puzzles: Sequence[str], seed: int) -> dict[str, list[int | None]]:
    """Return the steps to the first solution of each puzzle, by line."""
    return {
        line: [
            steps_to_solve(puzzle, candidates, np.random.default_rng([seed, number]))
            for number, puzzle in enumerate(puzzles)
        ]
        for line, candidates in found.fillings(seed).items()
    }


def solved(runs: Runs, budget: float = np.inf) -> float:
    """Return the share of puzzles and seeds solved within a number of steps."""
    return float(np.mean([s is not None and s <= budget for own in runs.values() for s in own]))


def ratio(runs: Runs, others: Runs, longest: float | None = None) -> tuple[Estimate, int]:
    """Return the steps of one line over those of another: geometric mean over puzzles.

    Args:
        runs: The line.
        others: The other line.
        longest: Steps of a run that never solves its puzzle. Default: puzzles with such a run are left out.

    Returns:
        The ratio with Student's 95 % interval over puzzles, and the number of these puzzles.
    """
    own = [p for p in runs if longest or None not in (*runs[p], *others[p])]
    never = longest or np.nan
    logs = [_log_steps(runs[p], never) - _log_steps(others[p], never) for p in own]
    value, low, high = (float(np.exp(getattr(over_pairs(logs), end))) for end in ("value", "low", "high"))
    return Estimate(value, low, high), len(own)


def _log_steps(own: Sequence[int | None], never: float) -> float:
    """Return the mean logarithm of the steps over seeds."""
    return float(np.mean([np.log(never if steps is None else steps) for steps in own]))


def wins(runs: Runs, others: Runs) -> tuple[int, int]:
    """Return in how many puzzles the median steps are fewer, and in how many more; "never" counts as most."""

    def median(own: Sequence[int | None]) -> float:
        return float(np.median([np.inf if s is None else s for s in own]))

    pairs = [(median(runs[p]), median(others[p])) for p in runs]
    return sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)


def by_value(found: Tree, left: str, proposals: Mapping[str, tuple[str, ...]]) -> float:
    """Return the probability of 24 by the proposals with the highest recorded value; ties at random."""
    values = {shown(state): float(np.mean(judged)) for state, judged in found.values.items()}

    def chance(left: str) -> float:
        own = proposals.get(left, ())
        judged = [values.get(after, 0.0) for after in own]
        best = [after for after, value in zip(own, judged, strict=True) if value == max(judged)]
        return float(np.mean([after == WON or chance(after) for after in best])) if best else 0.0

    return chance(left)


def tell(folder: str | Path, out: Path, scale: Scale) -> str:
    """Play all puzzles with all priors; return the results in Markdown."""
    search = tree(folder)
    found = Recorded(search)
    puzzles, seeds = (found.puzzles[:3], 1) if scale.smoke else (found.puzzles, scale.seeds)
    within = {shown(puzzle) for puzzle in search.puzzles if search.within(puzzle)} & set(puzzles)
    keys = [(seed,) for seed in range(seeds)]
    rows = kept(out / "steps.jsonl", keys, lambda seed: {"steps": play(found, puzzles, seed)})
    runs: dict[str, Runs] = {
        line: {puzzle: [row["steps"][line][i] for row in rows] for i, puzzle in enumerate(puzzles)}
        for line in rows[0]["steps"]
    }
    value = np.mean([by_value(search, puzzle, found.proposals) for puzzle in puzzles])
    searched = np.mean([won for won, p in zip(search.found, found.puzzles, strict=True) if p in puzzles])
    parts = [
        f"{len(puzzles)} puzzles, {seeds} seeds each, evidence L2 where GPT-4 proposes and L0 elsewhere.",
        solved_table(runs, within),
        f"Without learning: the proposal of GPT-4's highest value at every step solves {value:.2f} of the "
        f"puzzles, its recorded tree search of width 5 {searched:.2f}.",
        "#### Against each other, paired by puzzle",
        ratio_table(runs),
        "#### Recall",
        recall_table(found),
    ]
    return "\n\n".join(parts)


def solved_table(runs: Mapping[str, Runs], within: set[str]) -> str:
    """Return the share of puzzles solved by number of steps, of all and of those that proposals can solve."""
    heads = [f"{n:,} steps" for n in BUDGETS]
    lines = [
        f"| C(s) | {' | '.join(heads)} | ever | median steps, all | median steps, {len(within)} within |",
        "|---" * (len(heads) + 4) + "|",
    ]
    for line, own in runs.items():
        shares = " | ".join(f"{solved(own, n):.2f}" for n in BUDGETS)
        inside = {puzzle: own[puzzle] for puzzle in own if puzzle in within}
        lines.append(f"| {line} | {shares} | {solved(own):.2f} | {_median(own)} | {_median(inside)} |")
    return "\n".join(lines)


def _median(runs: Runs) -> str:
    steps = [np.inf if s is None else s for own in runs.values() for s in own]
    middle = float(np.median(steps)) if steps else np.inf
    return f"{middle:,.0f}" if np.isfinite(middle) else "never"


def ratio_table(runs: Mapping[str, Runs]) -> str:
    """Return the comparison of GPT-4's proposals with every other line, and the verdict.

    A run that never solves its puzzle counts with the steps of the longest run that did, of any line.
    """
    lines = [
        "| arm | against | ratio of steps | puzzles that both solve | ratio in these | fewer steps | more |",
        "|---|---|---|---|---|---|---|",
    ]
    longest = max(s for own in runs.values() for seeds in own.values() for s in seeds if s is not None)
    said: dict[str, list[str]] = {}
    for line in (STRICT, PRIOR):
        for other in (name for name in runs if name not in (STRICT, PRIOR)):
            share, _ = ratio(runs[line], runs[other], longest)
            among, n = ratio(runs[line], runs[other])
            fewer, more = wins(runs[line], runs[other])
            lines.append(f"| {line} | {other} | {share} | {n} | {among} | {fewer} | {more} |")
            said.setdefault(line, []).append(f"over {other}: {'shown' if share.high < 1 else 'not shown'}")
    told = f"A run that never solves its puzzle counts with {longest:,} steps, those of the longest that did."
    verdicts = [f"- {line} (L2) {'; '.join(own)}." for line, own in said.items()]
    return "\n".join([told, "", *lines, "", *verdicts])


def recall_table(found: Recorded) -> str:
    """Return how often the candidates keep 24 reachable, by the number of numbers left."""
    fillings = found.fillings(0)
    rules = ("words", "arithmetic")
    lines = [
        f"| numbers left | states | moves | GPT-4's | recall: GPT-4 | random k | {' | '.join(rules)} "
        "| moves of arithmetic for GPT-4's recall |",
        "|---" * (7 + len(rules)) + "|",
    ]
    for n in found.enough:
        states = found.states(n)
        moves = np.mean([len(successors(left)) for left in states])
        own = np.mean([len(found.proposals[left]) for left in states])
        chance = np.mean([_by_chance(left, len(found.proposals[left])) for left in states])
        recalls = [found.recall(n, fillings[name]) for name in (PRIOR, *rules)]
        cells = [f"{x:.2f}" for x in (recalls[0], chance, *recalls[1:])]
        lines.append(
            f"| {n} | {len(states)} | {moves:.1f} | {own:.1f} | {' | '.join(cells)} | {found.enough[n]} |"
        )
    return "\n".join(lines)


def _by_chance(left: str, k: int) -> float:
    """Return the probability that one of k different random successors keeps 24 reachable."""
    n, hits = len(successors(left)), len(good(left))
    return 1 - comb(n - hits, k) / comb(n, k)


def _parts(scale: Scale, data: Path) -> list[Part]:
    return [Part("GPT-4's proposals", (), beside=lambda folder: tell(scale.data, folder, scale))]


STUDIES = {
    "game24": Study(
        "game24",
        "Does a learner save environment steps if it chooses only among a large model's proposals?",
        "Tree of Thoughts (Yao et al., NeurIPS 2023): of 100 puzzles GPT-4 solves 0.07 at once, 0.04 after a "
        "chain of thought, and 0.74 by a search of width 5 over its own proposals and values.",
        "Recorded answers of GPT-4 from 2023, with one draw of proposals for each state that its search of "
        "width 5 expanded. Q is a separate table per puzzle, with initial value 1 and learning rate 1, so "
        "nothing is transferred between puzzles. Moves that leave the same numbers count once.",
        _parts,
        seeds=SEEDS,
        recorded="a clone of github.com/princeton-nlp/tree-of-thought-llm",
    )
}
