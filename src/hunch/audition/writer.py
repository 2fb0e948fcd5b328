"""The program writer: do its programs run, does it repair what is broken, and keep what is whole?

The prompt is the plain one of program searches (:func:`hunch.roles.writer.programs.chat_prompt`). A third of
the questions asks for a first program, a third shows a broken one with its error, and a third one that runs
with its fitness. An answer is right if it runs; where a program was shown, it must also be no worse than the
one that was broken or shown. Programs run in the sandbox.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import numpy as np

from hunch.audition.question import Bed, Role, Scores
from hunch.core import FloatArray
from hunch.envs.design.mutation import mutate
from hunch.envs.design.problem import DesignProblem, Problem, Trial
from hunch.lm.base import LanguageModel
from hunch.roles.writer.programs import Attempt, ModelWriter

BEDS = (
    Bed("hunch/Heuristic-BinPacking-v0"),
    Bed("hunch/Heuristic-CapSet-v0"),
    Bed("hunch/PolicyCode-v0"),
    Bed("hunch/WorldModelCode-v0"),
)
KINDS = ("first", "repair", "keep")
MISSING = "undefined_name"
Write = Callable[[Problem, Sequence[Attempt], str, int], str]


def programs(lm: LanguageModel, bed: Bed, n: int, seed: int) -> Scores:
    """Return for each request whether the program is right."""
    writer = ModelWriter(lm)

    def write(problem: Problem, parents: Sequence[Attempt], feedback: str, number: int) -> str:
        return writer.write(problem, parents, feedback, 1, number)[0]

    return _scored(write, bed, n, seed)


def by_chance(bed: Bed, n: int, seed: int) -> Scores:
    """Change the syntax tree of what is shown at random, or of the problem's first program."""

    def write(problem: Problem, parents: Sequence[Attempt], feedback: str, number: int) -> str:
        given = [parent.program for parent in parents] or [problem.start]
        return mutate(given, problem.function, np.random.default_rng([seed, number]))

    return _scored(write, bed, n, seed)


def _scored(write: Write, bed: Bed, n: int, seed: int) -> Scores:
    env = bed.make(seed).unwrapped
    assert isinstance(env, DesignProblem)
    env.reset(seed=seed)
    values, kinds = [], [KINDS[i % len(KINDS)] for i in range(n)]
    for number, kind in enumerate(kinds):
        shown, least = _shown(env, kind, np.random.default_rng([seed, number]))
        told = shown[-1].told() if shown else ""
        trial = _tried(env, write(env.problem, shown, told, number))
        values.append(float(trial.fitness is not None and trial.fitness >= least))
    right: FloatArray = np.array(values)
    rates = {f"{kind}": float(right[[k == kind for k in kinds]].mean()) for kind in dict.fromkeys(kinds)}
    return Scores(right, list(range(n)), rates)


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
    """Return the program with one of the names that it reads replaced by one that does not exist."""
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
    "share of requests answered with a program that runs and is no worse than what was shown",
    ("generate",),
    BEDS,
    programs,
    by_chance,
)
