"""The program writer: do its programs run, and does it repair broken ones and preserve working ones?

The prompt is the plain one of program searches (:func:`hunch.roles.writer.programs.chat_prompt`). A third of
the questions asks for a first program, a third shows a broken one with its error, and a third shows a
working one with its fitness. An answer is right if it runs and is no copy of a program in the request, which
begins with the problem's first one; if another was shown, it must also be no worse than the original or shown
one. A search refuses copies, too, and a writer that repeats the request would else be right in two of three
questions. Programs run in the sandbox.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hunch.audition.question import USUAL, Bed, Manner, Role, Scores, in_words
from hunch.core import FloatArray
from hunch.envs.design.code import flaw, structure
from hunch.envs.design.mutation import mutate
from hunch.envs.design.problem import DesignProblem, Problem, Trial
from hunch.lm.asking import AskConfig, room
from hunch.lm.base import LanguageModel
from hunch.roles.writer.programs import Attempt, ModelWriter

BEDS = (
    Bed("hunch/Heuristic-BinPacking-v0"),
    Bed("hunch/PolicyCode-v0"),
    Bed("hunch/WorldModelCode-v0"),
)
KINDS = ("first", "repair", "keep")
MISSING = "undefined_name"
LONGEST = 512
"""Maximum tokens of a program, for a model that does not think first; no solution needs more."""


class Tasks(NamedTuple):
    """A problem, and requests: kind, programs shown, and smallest fitness of a right answer."""

    env: DesignProblem
    requests: list[tuple[str, list[Attempt], float]]


def tasks(bed: Bed, n: int, seed: int) -> Tasks:
    """Draw n requests, a third of each kind."""
    env = bed.make(seed).unwrapped
    assert isinstance(env, DesignProblem)
    env.reset(seed=seed)
    kinds = [KINDS[i % len(KINDS)] for i in range(n)]
    rngs = [np.random.default_rng([seed, i]) for i in range(n)]
    return Tasks(env, [(kind, *_shown(env, kind, rng)) for kind, rng in zip(kinds, rngs, strict=True)])


def programs(lm: LanguageModel, drawn: Tasks, seed: int, manner: Manner = USUAL) -> Scores:
    """Return for each request whether the written program is right."""
    in_words(manner)
    most = min(LONGEST, (getattr(lm, "context", None) or 4 * LONGEST) // 4)
    writer = ModelWriter(lm, asks=AskConfig(max_tokens=manner.max_tokens or room(lm, most), patience=None))
    problem, after = drawn.env.problem, [shown for _, shown, _ in drawn.requests if shown]
    first = iter(writer.write(problem, [], "", len(drawn.requests) - len(after)))
    revised = iter(writer.write_each(problem, [(shown, shown[-1].outcome_text()) for shown in after]))
    return _scored([next(revised if shown else first) for _, shown, _ in drawn.requests], drawn)


def by_chance(drawn: Tasks, seed: int) -> Scores:
    """Return the scores of random changes to the shown program, or to the problem's initial program."""
    problem = drawn.env.problem
    given = [[a.program for a in shown] or [problem.start] for _, shown, _ in drawn.requests]
    rngs = [np.random.default_rng([seed, number]) for number in range(len(given))]
    changed = [mutate(program, problem.function, rng) for program, rng in zip(given, rngs, strict=True)]
    return _scored(changed, drawn)


def _scored(written: Sequence[str], drawn: Tasks) -> Scores:
    problem = drawn.env.problem
    right: FloatArray = np.zeros(len(written))
    copies: FloatArray = np.zeros(len(written))
    for i, (program, (_, shown, least)) in enumerate(zip(written, drawn.requests, strict=True)):
        fitness = _tried(drawn.env, program).fitness
        in_request = [problem.start, *(attempt.program for attempt in shown)]
        copies[i] = _says(program, problem) in {_says(text, problem) for text in in_request}
        right[i] = fitness is not None and fitness >= least and not copies[i]
    kinds = [kind for kind, _, _ in drawn.requests]
    rates = {kind: float(right[[k == kind for k in kinds]].mean()) for kind in dict.fromkeys(kinds)}
    rates["copies"] = float(copies.mean())
    unread = float(np.mean([not program.strip() for program in written]))
    return Scores(right, list(range(len(right))), rates, unread=unread)


def _says(program: str, problem: Problem) -> str:
    """Return what tells a program from copies of it: its structure without imports.

    The request shows the first program with an import that it does not need. A text that is no program in
    Python is told by itself.
    """
    if flaw(program):
        return program.strip()
    tree = ast.parse(program)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return structure(ast.unparse(tree), problem.function)


def _shown(env: DesignProblem, kind: str, rng: np.random.Generator) -> tuple[list[Attempt], float]:
    """Return what the writer is shown, and the least fitness of a right answer."""
    if kind == "first":
        return [], -np.inf
    whole, trial = _running(env, rng)
    assert trial.fitness is not None
    if kind == "keep":
        return [Attempt(0, whole, None).after(trial)], trial.fitness
    wrecked = broken(whole, rng)
    return [Attempt(0, wrecked, None).after(_tried(env, wrecked))], trial.fitness


def _running(env: DesignProblem, rng: np.random.Generator) -> tuple[str, Trial]:
    """Change the first program at random until it runs; after ten tries it stays as it is."""
    start = env.problem.start
    for _ in range(10):
        program = mutate([start], env.problem.function, rng)
        if (trial := _tried(env, program)).fitness is not None:
            return program, trial
    return start, _tried(env, start)


def broken(program: str, rng: np.random.Generator) -> str:
    """Return the program with one of its names replaced by a name that does not exist."""
    tree = ast.parse(program)
    reads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    if reads:
        reads[int(rng.integers(len(reads)))].id = MISSING
    return ast.unparse(tree)


def _tried(env: DesignProblem, program: str) -> Trial:
    """Run a program as a step of the environment does."""
    env.reset(seed=0)
    _, _, _, _, info = env.step(program)
    trial = info["raw"]
    assert isinstance(trial, Trial)
    return trial


WRITER = Role(
    "writer",
    "share of requests answered with a program that runs, is no copy, and no worse than what was shown",
    ("generate",),
    BEDS,
    tasks,
    programs,
    by_chance,
)
