"""Scripted writers of programs (L0): ``scripted:mutator``, ``scripted:writer`` and ``scripted:modeller``.

All of them read only the prompt, like a model, and answer in prose with a block of code.

``scripted:mutator`` randomly changes the syntax trees of the programs in the prompt. It is a search without
knowledge, for comparing rules of choosing parents.

``scripted:writer`` writes rewards as sums of parts, drawn from a grammar over the variables that the
interface lists, and revises a program by the findings of :mod:`hunch_studies.rules.reward_feedback`. Without
feedback it only damages. Its dials are shares: ``repair`` of findings acted on, ``break`` of parts that a
revision damages, ``crash`` of answers with a planted error, ``malformed`` of answers without code that
parses. It does not know what a good reward is.

``scripted:modeller``, which writes world models, is in :mod:`hunch_studies.rules.modeller`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hunch.core import UsageError
from hunch.envs.design.code import blocks
from hunch.envs.design.mutation import mutate
from hunch.lm.backends.sampling import cut, sample_rng
from hunch.lm.base import Model, Verb
from hunch.lm.speech import ONE_LINE, Sampling
from hunch_studies.rules import modeller
from hunch_studies.rules.reward_feedback import repaired
from hunch_studies.rules.reward_grammar import (
    damaged,
    draft,
    evenly,
    listed,
    parts_of,
    quantities,
    written,
)

_WANTED = re.compile(r"`(\w+?)(?:_v\d+)?`(?!\(\))")


class ScriptedWriter(Model):
    """A scripted writer in place of a language model.

    Args:
        name: Name in ``scripted:<name>``.
        write: Returns an answer, given a prompt and a random generator.
        dials: The dials, which are part of its revision.
    """

    verbs: frozenset[Verb] = frozenset({"generate"})

    def __init__(self, name: str, write: Callable[[str, np.random.Generator], str], dials: str = "") -> None:
        self.name, self.write = f"scripted:{name}", write
        self.revision = f"1:{name}:{dials}"

    def generate(
        self, prompts: Sequence[str], k: int = 1, sampling: Sampling = ONE_LINE, first: int = 0
    ) -> list[list[str]]:
        """Return k answers to each prompt; the randomness of sample i depends on (writer, prompt, i)."""
        return [
            [
                cut(self.write(prompt, sample_rng(self.revision, prompt, i)), sampling.stop)
                for i in range(first, first + k)
            ]
            for prompt in prompts
        ]


DIALS: dict[str, tuple[str, ...]] = {
    "mutator": (),
    "writer": ("repair", "break", "crash", "malformed"),
    "modeller": ("bugs", "repair", "break", "crash", "malformed", "shy", "trace", "blind", "draw"),
}
"""The writers, with their dials."""


def load(name: str, dials: dict[str, float]) -> ScriptedWriter:
    """Return the writer of that name.

    Raises:
        UsageError: if it has no such dial, or one is not from 0 to 1.
    """
    known = DIALS[name]
    for dial, share in dials.items():
        if dial not in known:
            raise UsageError(f"scripted:{name} has no dial {dial!r}; it has {', '.join(known) or 'none'}.")
        most = np.inf if dial == "draw" else 1
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= most:
            raise UsageError(f"The dial {dial} of scripted:{name} must be from 0 to {most:g}, not {share!r}.")
    if name == "mutator":
        return ScriptedWriter(name, mutated)
    settings = {"damage" if dial == "break" else dial: float(share) for dial, share in dials.items()}
    if name == "modeller":
        model = modeller.Dials(**settings)
        return ScriptedWriter(name, lambda prompt, rng: modeller.modelled(prompt, rng, model), str(model))
    chosen = Dials(**settings)
    return ScriptedWriter(name, lambda prompt, rng: revised(prompt, rng, chosen), repr(chosen))


# ---- the mutator ------------------------------------------------------------------------------------------


def wanted(prompt: str) -> str:
    """Return the function that a prompt asks for: the last name in backquotes, without its version."""
    names = _WANTED.findall(prompt)
    return names[-1] if names else ""


def programs(prompt: str, function: str) -> list[str]:
    """Return the programs of a prompt that define the function, in order; versions in a block are split."""
    found: list[str] = []
    for block in blocks(prompt):
        try:
            nodes = ast.parse(block).body
        except SyntaxError:
            continue
        defined = [
            n
            for n in nodes
            if isinstance(n, ast.FunctionDef) and re.sub(r"_v\d+$", "", n.name) == function and _has_body(n)
        ]
        rest = [n for n in nodes if not (isinstance(n, ast.FunctionDef) and n.name.startswith(function))]
        for one in defined:
            one.name = function
            found.append(ast.unparse(ast.Module([*rest, one], [])))
    return found


def _has_body(node: ast.FunctionDef) -> bool:
    return len(node.body) > 1 or not isinstance(node.body[0], ast.Expr)


def mutated(prompt: str, rng: np.random.Generator) -> str:
    """Return a random change of the last program of a prompt, with pieces of earlier versions."""
    function = wanted(prompt)
    last = programs(f"```\n{blocks(prompt)[-1]}\n```", function) if blocks(prompt) else []
    code = mutate(last or programs(prompt, function), function, rng)
    return f"```python\n{code}\n```" if code else "There is no program to change."


# ---- the writer of rewards --------------------------------------------------------------------------------


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
