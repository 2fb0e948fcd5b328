"""``scripted:writer``: writes rewards as sums of parts, without knowing what a good reward is.

The parts are drawn from a grammar over the variables that the interface lists. It reads only the prompt, like
a model, answers in prose with a block of code, and revises a program by the findings of
:mod:`hunch.envs.design.reward_feedback`. Without feedback it only damages. Its dials are shares: ``repair``
of findings acted on, ``break`` of parts that a revision damages, ``crash`` of answers with a planted error,
``malformed`` of answers without code that parses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hunch.envs.design.mutator import programs, wanted
from hunch.envs.design.reward_feedback import repaired
from hunch.envs.design.reward_grammar import (
    damaged,
    draft,
    evenly,
    listed,
    parts_of,
    quantities,
    written,
)
from hunch.lm.backends.scripted import ScriptedWriter, check_shares
from hunch.lm.rules import writer


@writer("writer", dials=("repair", "break", "crash", "malformed"))
def reward_writer(**dials: float) -> ScriptedWriter:
    """Return the writer.

    Raises:
        UsageError: if a dial is not from 0 to 1.
    """
    check_shares("writer", dials)
    shares = {"damage" if dial == "break" else dial: float(share) for dial, share in dials.items()}
    chosen = Dials(**shares)
    return ScriptedWriter("writer", lambda prompt, rng: revised(prompt, rng, chosen), repr(chosen))


@dataclass(frozen=True)
class Dials:
    """Shares of findings acted on, of parts damaged, of answers that crash, and of those without code."""

    repair: float = 0.0
    damage: float = 0.0
    crash: float = 0.0
    malformed: float = 0.0


def revised(prompt: str, rng: np.random.Generator, dials: Dials) -> str:
    """Return an answer: a new reward, or a revision of the last one in the prompt by its feedback."""
    function, variables = wanted(prompt), listed(prompt)
    if not variables:
        return "I do not see which variables the function may read."
    names, draw = [variable.name for variable in variables], evenly(quantities(variables), rng)
    last = programs(prompt, function)
    parts = parts_of(last[-1]) if last else []
    if parts:
        parts = repaired(parts, names, prompt.rpartition("```")[2], draw, rng, dials.repair)
        parts = [damaged(p, variables, draw, rng) if rng.random() < dials.damage else p for p in parts]
    code = written(function, names, parts or draft(draw, rng))
    if rng.random() < dials.crash:
        code = _misspelt(code, names, rng)
    if rng.random() < dials.malformed:
        code = code.replace(")", "", 1)
    return f"Here is the reward.\n\n```python\n{code}```\n"


def _misspelt(code: str, variables: Sequence[str], rng: np.random.Generator) -> str:
    """Leave out a letter of one of the names that the body reads."""
    head, _, body = code.partition("):\n")
    read = [name for name in variables if re.search(rf"\b{name}\b", body)]
    if not read:
        return code
    name = read[int(rng.integers(len(read)))]
    return f"{head}):\n" + re.sub(rf"\b{name}\b", name[:-2] + name[-1], body, count=1)
