"""Scripted writers of programs (L0): ``scripted:mutator``, ``scripted:writer`` and ``scripted:modeller``.

All of them read only the prompt, like a model, and answer in prose with a block of code.

``scripted:mutator`` randomly changes the syntax trees of the programs in the prompt. It is a search without
knowledge, for comparing rules of choosing parents.

``scripted:writer`` writes rewards as sums of parts, drawn from a grammar over the variables that the
interface lists, and revises a program according to the feedback: after an error it corrects the name; it
replaces a flat part; it changes the sign of a part that falls as the task metric rises; it rescales a part
that dominates the others. Without feedback its changes are blind. Its dials are shares: ``repair`` of such
findings acted on, ``break`` of parts that a revision damages, ``crash`` of answers with a planted error,
``malformed`` of answers without code that parses. It does not know what a good reward is.

``scripted:modeller``, which writes world models, is in :mod:`hunch.rules.modeller`.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hunch.core import UsageError
from hunch.envs.design.code import blocks
from hunch.envs.design.mutation import mutate
from hunch.lm.base import ONE_LINE, Model, Sampling, Verb, cut, sample_rng
from hunch.rules import modeller

_WANTED = re.compile(r"`(\w+?)(?:_v\d+)?`(?!\(\))")
_VARIABLE = re.compile(r"^- (\w+): numpy array of shape \(n(?:, (\d+))?,?\)", re.MULTILINE)
_PART = re.compile(r"^    (\w+) = (-?[\d.e-]+) \* (.+)$", re.MULTILINE)
_NUMBER = r"-?[\d.]+(?:e[+-]?\d+)?"
_CURVE = re.compile(rf"^(\w[\w ]*): ({_NUMBER}(?:, {_NUMBER})+);", re.MULTILINE)
_NAME_ERROR = re.compile(r"NameError: name '(\w+)' is not defined")


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
    "modeller": ("bugs", "repair", "break", "crash", "malformed", "shy", "trace"),
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
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise UsageError(f"The dial {dial} of scripted:{name} must be from 0 to 1, not {share!r}.")
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


@dataclass(frozen=True)
class Part:
    """A part of a reward: weight times expression."""

    weight: float
    expression: str


FLAT, DWARFS = 0.02, 20.0
"""Relative change below which a curve is flat, and factor above which a part dominates another."""
WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)


def revised(prompt: str, rng: np.random.Generator, dials: Dials) -> str:
    """Return an answer: a new reward, or a revision of the last one in the prompt by its feedback."""
    function, variables = wanted(prompt), listed(prompt)
    if not variables:
        return "I do not see which variables the function may read."
    last = programs(prompt, function)
    parts = _parts(last[-1]) if last else []
    if parts:
        told = prompt.rpartition("```")[2]
        parts = _repaired(parts, variables, told, rng, dials.repair)
        parts = [damaged(part, variables, rng) if rng.random() < dials.damage else part for part in parts]
    else:
        parts = [_drawn(variables, rng) for _ in range(int(rng.integers(1, 4)))]
    code = written(function, list(variables), parts)
    if rng.random() < dials.crash:
        code = _misspelt(code, list(variables), rng)
    if rng.random() < dials.malformed:
        code = code.replace(")", "", 1)
    return f"The reward has {len(parts)} parts.\n\n```python\n{code}```\n"


def listed(prompt: str) -> dict[str, int]:
    """Return the variables that the interface lists, with their size; 0 for one number per step."""
    return {name: int(size or 0) for name, size in _VARIABLE.findall(prompt)}


def _parts(program: str) -> list[Part]:
    """Return the parts of a program of this writer, including misspelt names; none for other programs."""
    return [Part(float(weight), code) for _, weight, code in _PART.findall(program)]


def written(function: str, variables: Sequence[str], parts: Sequence[Part]) -> str:
    """Return the program of these parts, each of which is a component."""
    lines = [f"    part_{i} = {part.weight!r} * {part.expression}" for i, part in enumerate(parts)]
    names = [f"part_{i}" for i in range(len(parts))]
    components = ", ".join(f'"{name}": {name}' for name in names)
    return (
        f"import numpy as np\n\n\ndef {function}({', '.join(variables)}):\n"
        + "\n".join(lines)
        + f"\n    return {' + '.join(names)}, {{{components}}}\n"
    )


def _drawn(variables: dict[str, int], rng: np.random.Generator) -> Part:
    """Draw a part from the grammar: a sign, a weight, a shape, and a number computed from the variables."""
    shape = ("{}", "({}) ** 2", "np.tanh({})", "np.exp(-np.abs({}))")[int(rng.integers(4))]
    sign = (-1.0, 1.0)[int(rng.integers(2))]
    return Part(sign * WEIGHTS[int(rng.integers(1, 4))], shape.format(_scalar(variables, rng)))


def _scalar(variables: dict[str, int], rng: np.random.Generator) -> str:
    """Draw one number per step: from one variable, or from two of the same size."""
    names = list(variables)
    one = names[int(rng.integers(len(names)))]
    alike = [name for name in names if variables[name] == variables[one] and name != one]
    value = f"{one} - {alike[int(rng.integers(len(alike)))]}" if alike and rng.random() < 0.5 else one
    if not variables[one]:
        return (f"({value})", f"np.abs({value})")[int(rng.integers(2))]
    if rng.random() < 0.5:
        return f"np.linalg.norm({value}, axis=1)"
    return f"({value})[:, {int(rng.integers(variables[one]))}]"


def _repaired(
    parts: Sequence[Part], variables: dict[str, int], told: str, rng: np.random.Generator, share: float
) -> list[Part]:
    """Return the parts after acting on a share of the findings in the feedback."""
    wrong = _NAME_ERROR.search(told)
    if wrong:
        near = difflib.get_close_matches(wrong[1], variables, n=1, cutoff=0.0)
        mended = [Part(p.weight, re.sub(rf"\b{wrong[1]}\b", near[0], p.expression)) for p in parts]
        return mended if rng.random() < share else list(parts)
    curves = {name.strip(): [float(x) for x in row.split(",")] for name, row in _CURVE.findall(told)}
    metric = next((curve for name, curve in curves.items() if not name.startswith("part_")), None)
    if metric is None:
        return list(parts)
    sizes = [np.mean(np.abs(curves.get(f"part_{i}", [0.0]))) for i in range(len(parts))]
    found: list[Part] = []
    for i, part in enumerate(parts):
        curve = curves.get(f"part_{i}")
        acts = curve is not None and rng.random() < share
        found.append(_mended(part, curve, metric, sizes, variables, rng) if acts and curve else part)
    if not _gained(metric) and rng.random() < share:
        found.append(_drawn(variables, rng))  # nothing was achieved: something is missing
    return found[-4:]


def _mended(
    part: Part,
    curve: Sequence[float],
    metric: Sequence[float],
    sizes: Sequence[Any],
    variables: dict[str, int],
    rng: np.random.Generator,
) -> Part:
    """Return the change that a part's curve suggests: another part, the other sign, or another weight."""
    if np.ptp(curve) <= FLAT * (np.mean(np.abs(curve)) + 1e-9):
        return _drawn(variables, rng)
    if not _gained(metric):  # it was learnt, but did not help
        return _drawn(variables, rng)
    if np.ptp(metric) > 0 and np.corrcoef(curve, metric)[0, 1] < 0:
        return Part(-part.weight, part.expression)
    least = min((size for size in sizes if size > 0), default=0.0)
    if len(sizes) > 1 and least and np.mean(np.abs(curve)) > DWARFS * least:
        return Part(part.weight / 10, part.expression)
    return part


def _gained(metric: Sequence[float]) -> bool:
    """Return whether training raised the task's metric, or the task is nearly solved."""
    return max(metric) - metric[0] >= 0.05 or max(metric) >= 0.95


def damaged(part: Part, variables: dict[str, int], rng: np.random.Generator) -> Part:
    """Return a part with an error: the wrong sign, another scale, a wrong variable, or another shape."""
    kind = int(rng.integers(4))
    if kind == 0:
        return Part(-part.weight, part.expression)
    if kind == 1:
        return Part(part.weight * (0.01, 100.0)[int(rng.integers(2))], part.expression)
    if kind == 2:
        return _drawn(variables, rng)
    read = [name for name in variables if re.search(rf"\b{name}\b", part.expression)]
    if not read:
        return part
    old = read[int(rng.integers(len(read)))]
    others = [name for name in variables if variables[name] == variables[old] and name != old]
    new = others[int(rng.integers(len(others)))] if others else old
    return Part(part.weight, re.sub(rf"\b{old}\b", new, part.expression))


def _misspelt(code: str, variables: Sequence[str], rng: np.random.Generator) -> str:
    """Leave out a letter of one of the names that the body reads."""
    head, _, body = code.partition("):\n")
    read = [name for name in variables if re.search(rf"\b{name}\b", body)]
    if not read:
        return code
    name = read[int(rng.integers(len(read)))]
    return f"{head}):\n" + re.sub(rf"\b{name}\b", name[:-2] + name[-1], body, count=1)
