"""``scripted:mutator``: randomly changes the syntax trees of the programs in a prompt.

It reads only the prompt, like a model, and answers with a block of code. It is a search without knowledge,
for comparing rules of choosing parents.
"""

from __future__ import annotations

import ast
import re

import numpy as np

from hunch.envs.design.code import blocks, rename
from hunch.envs.design.mutation import mutate
from hunch.lm.backends.scripted import ScriptedWriter
from hunch.lm.rules import writer

_WANTED = re.compile(r"`(\w+?)(?:_v\d+)?`(?!\(\))")


@writer("mutator", dials=())
def mutator() -> ScriptedWriter:
    """Return the writer."""
    return ScriptedWriter("mutator", mutated)


def wanted(prompt: str) -> str:
    """Return the function that a prompt asks for: the last name in backquotes, without its version."""
    names = _WANTED.findall(prompt)
    return names[-1] if names else ""


def programs(prompt: str, function: str) -> list[str]:
    """Return the programs of a prompt that define the function, in order; versions in a block are split."""
    written: list[str] = []
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
            rename(one, function)
            written.append(ast.unparse(ast.Module([*rest, one], [])))
    return written


def _has_body(node: ast.FunctionDef) -> bool:
    return len(node.body) > 1 or not isinstance(node.body[0], ast.Expr)


def mutated(prompt: str, rng: np.random.Generator) -> str:
    """Return a random change of the last program of a prompt, with pieces of earlier versions."""
    function = wanted(prompt)
    last = programs(f"```\n{blocks(prompt)[-1]}\n```", function) if blocks(prompt) else []
    code = mutate(last or programs(prompt, function), function, rng)
    return f"```python\n{code}\n```" if code else "There is no program to change."
