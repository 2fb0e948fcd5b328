"""A scripted writer of world models (L0), ``scripted:modeller``: known programs with planted errors.

It knows the dynamics of some environments, which it recognises by the task in the prompt. From scratch, or
from a program's first lines, it writes them with errors: each further line is damaged with probability
``bugs``, without knowledge of the environment (another comparison, a wrong number or sign, another variable,
a missing statement). It revises a given program according to the feedback: with probability ``repair`` it
corrects one line, among those that an error names, or that affect a wrong prediction for the shown action.
Without feedback it rewrites one line as from scratch. With probability ``break`` a revision damages another
line; ``crash`` and ``malformed`` are shares of answers with a misspelt name, and without code that parses.
``shy`` is the share of rewards that are written from scratch without the rewarded case. ``trace`` is the
probability that it looks for the cause among all other lines, if the line that an error names is right.
``blind`` is the share of lines that it always writes wrong, in the same way; ``draw`` numbers their draw.

Packages that bring environments or games add what it knows of them. The code of a game's rules is in several
functions; there it corrects a line of the functions that a failed test is about, or that make states.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import cast

import numpy as np

from hunch.envs.design.dynamics import DYNAMICS
from hunch.lm.backends.sampling import sample_rng
from hunch.lm.backends.scripted import ScriptedWriter, check_shares
from hunch.lm.rules import writer

_SHOWN = re.compile(r"(first lines|was tried)[^\n]*:\n\n```python\n(.*?)\n```(.*)", re.DOTALL)
_WRONG = re.compile(r"One that is not, in (.+):\nstate: .*\naction: '(.*)'$", re.MULTILINE)
_ERROR = re.compile(r"\(line \d+: `(.*?)`\)")
_WANTED = re.compile(r"the functions? `(\w+)`")
_FAILED = re.compile(r"One that is not, in (.+):\nafter: ")
_TESTED = {
    "current player": ("current_player",),
    "legal actions": ("legal_actions",),
    "chance outcomes": ("chance_outcomes",),
    "returns": ("returns",),
    "inferred history": ("resample_history", "observation"),
}
"""Functions of a game that a test is about, besides those that make states; for other tests, observations."""
_APART = ("current_player", "legal_actions", "chance_outcomes", "returns", "resample_history", "observation")
"""The functions of a game that do not make states."""
_PIECES = {
    "step": ("next state", "reward", "done"),
    "transition": ("next state",),
    "reward": ("reward", "done"),
}
"""Return types of the functions."""
_NO_WAY = "no way to a reward"
_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""Wrong replacements of operators."""


@dataclass(frozen=True)
class Dials:
    """Shares of damaged lines, of findings acted on, of revisions that damage, and of other answers."""

    bugs: float = 0.2
    repair: float = 0.0
    damage: float = 0.0
    crash: float = 0.0
    malformed: float = 0.0
    shy: float = field(default=0.0, repr=False)
    trace: float = field(default=0.0, repr=False)
    blind: float = field(default=0.0, repr=False)
    draw: float = field(default=0.0, repr=False)

    def __str__(self) -> str:
        later = {"shy": self.shy, "trace": self.trace, "blind": self.blind, "draw": self.draw}
        set_ones = [f"{name}={share}" for name, share in later.items() if share]
        return ", ".join([repr(self), *set_ones])


@writer(
    "modeller",
    dials=("bugs", "repair", "break", "crash", "malformed", "shy", "trace", "blind", "draw"),
)
def modeller(**dials: float) -> ScriptedWriter:
    """Return the writer.

    Raises:
        UsageError: if a dial is not from 0 to 1; ``draw`` may be any number from 0.
    """
    check_shares("modeller", dials, unbounded=("draw",))
    shares = {"damage" if dial == "break" else dial: float(share) for dial, share in dials.items()}
    chosen = Dials(**shares)
    return ScriptedWriter("modeller", lambda prompt, rng: modelled(prompt, rng, chosen), str(chosen))


def modelled(prompt: str, rng: np.random.Generator, dials: Dials) -> str:
    """Return an answer: the dynamics from scratch or from first lines on, or a revised program."""
    wanted = (_WANTED.findall(prompt) or [""])[-1]
    code = _known(prompt, wanted)
    if code is None:
        return "I do not know this environment."
    known = _believed(code.splitlines(), dials)
    match = _SHOWN.search(prompt)
    shown = match[2].splitlines() if match else []
    if match and match[1] == "was tried" and len(shown) == len(known):
        lines = _revised(shown, known, match[3], rng, dials)
    else:
        kept = shown if match and match[1] == "first lines" else []
        lines = [*kept, *(_drawn(line, known, rng, dials.bugs) for line in known[len(kept) :])]
        if wanted == "reward" and rng.random() < dials.shy:
            lines = [_shy(line, after) for line, after in zip(lines, [*known[1:], ""], strict=True)]
    lines = _spoilt(lines, rng, dials)
    code = "\n".join(lines)
    return f"The dynamics in {len(lines)} lines.\n\n```python\n{code}\n```\n"


def _known(prompt: str, wanted: str) -> str | None:
    """Return the program that a prompt asks for; None if it is unknown."""
    return next((code for (task, name), code in DYNAMICS.items() if task in prompt and name == wanted), None)


def _believed(known: Sequence[str], dials: Dials) -> list[str]:
    """Return the program as the writer believes it to be."""
    rng = sample_rng("\n".join(known), "blind", int(dials.draw))
    return [_damaged(line, known, rng) if rng.random() < dials.blind else line for line in known]


def _revised(
    shown: Sequence[str], known: Sequence[str], feedback: str, rng: np.random.Generator, dials: Dials
) -> list[str]:
    lines = list(shown)
    suspects = _suspects(lines, known, feedback)
    if suspects == [] and _ERROR.search(feedback) and dials.trace and rng.random() < dials.trace:
        suspects = [i for i, (line, right) in enumerate(zip(lines, known, strict=True)) if line != right]
    if suspects is None:  # no feedback: rewrite one line from scratch
        place = int(rng.integers(len(lines)))
        lines[place] = _drawn(known[place], known, rng, dials.bugs)
    elif suspects and rng.random() < dials.repair:
        place = suspects[int(rng.integers(len(suspects)))]
        lines[place] = known[place]
    if rng.random() < dials.damage:
        place = int(rng.integers(len(lines)))
        lines[place] = _damaged(lines[place], known, rng)
    return lines


def _suspects(lines: Sequence[str], known: Sequence[str], feedback: str) -> list[int] | None:
    """Return the wrong lines to which the feedback leads; None if it mentions no error."""
    wrong = [i for i, (line, right) in enumerate(zip(lines, known, strict=True)) if line != right]
    if _NO_WAY in feedback:
        return wrong
    owners = _owners(known)
    if error := _ERROR.search(feedback):
        there = [i for i, line in enumerate(lines) if line.strip() == error[1].strip()]
        if len(set(owners)) == 1:
            return [i for i in wrong if i in there]
        return [i for i in wrong if owners[i] in {owners[j] for j in there}] or wrong
    if match := _FAILED.search(feedback):
        about = _TESTED.get(match[1], ("observation",))
        return [i for i in wrong if owners[i] in about or owners[i] not in _APART]
    if match := _WRONG.search(feedback):
        relevant = _relevant("\n".join(known), frozenset(match[1].split(" and ")), match[2])
        return [i for i in wrong if i in relevant]
    return None


def _owners(known: Sequence[str]) -> list[str]:
    """Return the function to which each line belongs; empty before the first."""
    names: list[str] = []
    for line in known:
        head = re.match(r"def (\w+)", line)
        names.append(head[1] if head else names[-1] if names else "")
    return names


@cache
def _relevant(code: str, pieces: frozenset[str], action: str) -> frozenset[int]:
    """Return the lines on which parts of the result depend for an action; counted from 0."""
    (function,) = ast.parse(code).body
    assert isinstance(function, ast.FunctionDef)
    *statements, last = function.body
    assert isinstance(last, ast.Return)
    returned, names = last.value, _PIECES[function.name]
    values = returned.elts if isinstance(returned, ast.Tuple) and len(names) > 1 else [last]
    needed = {name for i, piece in enumerate(names) if piece in pieces for name in _names(values[i])}
    lines, before = {last.lineno}, -1
    while len(lines) + len(needed) != before:
        before = len(lines) + len(needed)
        for statement in statements:
            inner = statement.body if isinstance(statement, ast.If) else [statement]
            assignments = [s for s in inner if isinstance(s, ast.Assign) and _names(s.targets[0]) & needed]
            if assignments and isinstance(statement, ast.If):
                lines.add(statement.lineno)
                needed |= _names(statement.test)
                assignments = [] if _other_action(statement.test, action) else assignments
            lines |= {s.lineno for s in assignments}
            needed |= {name for s in assignments if isinstance(s, ast.Assign) for name in _names(s.value)}
    return frozenset(line - 1 for line in lines)


def _other_action(test: ast.expr, action: str) -> bool:
    """Return whether a branch is for another action."""
    texts = {n.value for n in ast.walk(test) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return bool(texts) and action not in texts


def _names(node: ast.AST, kind: type[ast.expr_context] = ast.expr_context) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, kind)}


# ---- errors -----------------------------------------------------------------------------------------------


def _drawn(line: str, known: Sequence[str], rng: np.random.Generator, bugs: float) -> str:
    """Return a line as written from scratch."""
    return _damaged(line, known, rng) if rng.random() < bugs else line


def _shy(line: str, after: str) -> str:
    """Leave out a branch that gives a reward."""
    pays = re.search(r"reward = \d", after)
    return line[: len(line) - len(line.lstrip())] + "if False:" if pays and line.endswith(":") else line


def _spoilt(lines: list[str], rng: np.random.Generator, dials: Dials) -> list[str]:
    """Return the lines, with a misspelt name or a missing bracket as often as the dials say."""
    for share, spoil in ((dials.crash, _misspelt), (dials.malformed, _unclosed)):
        if rng.random() < share:
            place = 1 + int(rng.integers(len(lines) - 1))
            lines = [*lines[:place], spoil(lines[place]), *lines[place + 1 :]]
    return lines


def _misspelt(line: str) -> str:
    return re.sub(r"\b(row|column|state|passenger|force|angle|turning|swing)\b(?!\w* *=[^=])", r"\1_", line)


def _unclosed(line: str) -> str:
    return line.replace(")", "", 1) if ")" in line else f"{line} ("


def _damaged(line: str, known: Sequence[str], rng: np.random.Generator) -> str:
    """Return a line with one error of a general kind; unchanged if there is no place for one."""
    indent, text = line[: len(line) - len(line.lstrip())], line.strip()
    if text == "pass" or text.startswith(("def ", "from ")):
        return line
    header = text.endswith(":")
    try:
        tree = ast.parse(f"{text} pass" if header else f"def f():\n {text}")
    except SyntaxError:
        return line
    if len(indent) > 4 and rng.random() < 0.15:
        return f"{indent}pass"
    if header and rng.random() < 0.15:
        return f"{indent}if False:"
    names = sorted(_names(ast.parse("\n".join(known)), ast.Store))
    places = [node for node in ast.walk(tree) if _place(node, known)]
    if not places:
        return line
    _change(places[int(rng.integers(len(places)))], names, rng)
    new = ast.unparse(tree)
    return indent + (new.splitlines()[0] if header else new.splitlines()[1].strip())


def _place(node: ast.AST, known: Sequence[str]) -> bool:
    """Return whether an error may be planted here: at an operator, a number, or a variable that is read."""
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in _OTHER
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return type(node.op) in _OTHER
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return False
    return not hasattr(builtins, node.id) and node.id not in ("sin", "cos", "Random", *_owners(known))


def _change(node: ast.AST, names: Sequence[str], rng: np.random.Generator) -> None:
    if isinstance(node, ast.Compare):
        node.ops = [cast(ast.cmpop, _OTHER[type(node.ops[0])]())]
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = _OTHER[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value += int(rng.choice([-1, 1]))
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        node.value *= float(rng.choice([-1.0, 0.1, 10.0]))
    elif isinstance(node, ast.Name):
        others = [name for name in names if name != node.id]
        node.id = others[int(rng.integers(len(others)))]
