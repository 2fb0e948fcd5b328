"""Recorded proposals and judgements of GPT-4 in the Game of 24.

The files are those of Tree of Thoughts (Yao et al., NeurIPS 2023): a clone of
github.com/princeton-nlp/tree-of-thought-llm or a part of it, possibly compressed (``.json.gz``). Whether an
answer is right is computed here exactly; the labels in the files are not used.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from hunch.core import UsageError
from hunch_studies.worlds.game24.rules import TARGET, Numbers, numbers, operations, solvable

_LEFT = re.compile(r"\(left:\s*([^)]*)\)")
_STEPS = 3
T = TypeVar("T")


@dataclass(frozen=True)
class Tree:
    """The recorded search: proposals and values by the numbers left.

    A proposal counts only if its remaining numbers are exactly those of a legal operation, so proposals with
    rounded numbers do not count, and what follows them is never reached. Proposals for the same numbers in
    the trees of several puzzles are combined.

    Attributes:
        puzzles: The puzzles, in the order of the file.
        proposals: For numbers left, the proposed operations in order, in the words of ``hunch/Game24-v0``.
        values: For numbers left, all values that GPT-4 gave them.
        found: For each puzzle, whether an answer of the recorded search is right.
    """

    puzzles: tuple[Numbers, ...]
    proposals: Mapping[Numbers, tuple[str, ...]]
    values: Mapping[Numbers, tuple[float, ...]]
    found: tuple[bool, ...]

    def within(self, left: Numbers) -> bool:
        """Return whether 24 can be reached by proposals only."""
        if len(left) == 1:
            return left[0] == TARGET
        return any(self.within(operations(left)[text]) for text in self.proposals.get(left, ()))

    def uniform(self, left: Numbers) -> float:
        """Return the probability that uniformly drawn proposals reach 24; without proposals play is lost."""
        if len(left) == 1:
            return float(left[0] == TARGET)
        after = {operations(left)[text] for text in self.proposals.get(left, ())}
        return sum(map(self.uniform, after)) / len(after) if after else 0.0


@lru_cache(maxsize=100_000)
def uniform(left: Numbers) -> float:
    """Return the probability that uniformly drawn operations (with distinct results) reach 24."""
    if len(left) == 1:
        return float(left[0] == TARGET)
    after = set(operations(left).values())
    return sum(map(uniform, after)) / len(after)


def right(answer: str, puzzle: Numbers) -> bool:
    """Return whether an answer such as ``Answer: (4 + 8) * (6 - 4) = 24`` is a right solution."""
    line = answer.strip().splitlines()[-1] if answer.strip() else ""
    expression = line.lower().replace("answer:", "").partition("=")[0].strip()
    try:
        value, used = _evaluated(ast.parse(expression, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return False
    return value == TARGET and tuple(sorted(used)) == puzzle


def _evaluated(node: ast.expr) -> tuple[Fraction, list[Fraction]]:
    """Value of an expression of whole numbers, and the numbers in it."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return Fraction(value), [Fraction(value)]
        case ast.BinOp(left, operator, other):
            (a, used), (b, more) = _evaluated(left), _evaluated(other)
            match operator:
                case ast.Add():
                    return a + b, used + more
                case ast.Sub():
                    return a - b, used + more
                case ast.Mult():
                    return a * b, used + more
                case ast.Div():
                    return a / b, used + more
    raise ValueError("the answer is not a sum, difference, product or quotient of whole numbers")


def tree(folder: str | Path) -> Tree:
    """Read the recorded search.

    Args:
        folder: The repository.

    Raises:
        UsageError: if its file is missing, damaged or of another form.
    """
    path = _file(folder, "propose")
    proposals: dict[Numbers, dict[str, None]] = defaultdict(dict)
    values: dict[Numbers, list[float]] = defaultdict(list)
    puzzles, found = list[Numbers](), list[bool]()
    for record in _records(path, ("steps", "ys")):
        try:
            puzzle = numbers(record["steps"][0]["x"])
            for step in record["steps"][:_STEPS]:
                _read_step(step, puzzle, proposals, values)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise UsageError(f"{path} has another format: record {len(puzzles)} has no such steps.") from None
        puzzles.append(puzzle)
        found.append(any(right(answer, puzzle) for answer in record["ys"]))
    return Tree(tuple(puzzles), _fixed(proposals), _fixed(values), tuple(found))


def _fixed(lists: Mapping[Numbers, Iterable[T]]) -> dict[Numbers, tuple[T, ...]]:
    return {left: tuple(several) for left, several in lists.items()}


def _read_step(
    step: Mapping[str, Any],
    puzzle: Numbers,
    proposals: dict[Numbers, dict[str, None]],
    values: dict[Numbers, list[float]],
) -> None:
    """Note what was proposed and judged in one step of the search."""
    for text, value in zip(step["new_ys"], step["values"], strict=False):
        before = max((path for path in step["ys"] if text.startswith(path)), key=len, default=None)
        if before is None:
            continue
        here = left_after(before) if before.strip() else puzzle
        there = left_after(text)
        if there is not None:
            values[there].append(float(value))
        action = None if here is None or there is None else _operation(here, there, text)
        if here is not None and action is not None:
            proposals[here][action] = None


def left_after(text: str) -> Numbers | None:
    """Return the numbers left according to the last line of a text; None if it names none."""
    lines = [line for line in text.splitlines() if line.strip()]
    match = _LEFT.search(lines[-1]) if lines else None
    try:
        return tuple(sorted(Fraction(part) for part in match[1].split())) if match else None
    except (ValueError, ZeroDivisionError):
        return None


def _operation(here: Numbers, there: Numbers, text: str) -> str | None:
    """The legal operation from some numbers to others, the one that the text names if there are several."""
    leading = [words for words, after in operations(here).items() if after == there] if len(here) > 1 else []
    sign = re.search(r"\s([-+*/])\s", text.splitlines()[-1])
    named = [words for words in leading if sign and words.split()[1] == sign[1]]
    return next(iter(named or leading), None)


def samples(folder: str | Path, kind: str) -> list[tuple[bool, ...]]:
    """Return whether each of the recorded single answers is right, puzzle by puzzle.

    Args:
        folder: The repository.
        kind: ``"standard"`` for direct answers, or ``"cot"`` for answers after written steps.

    Raises:
        UsageError: if the file is missing, damaged or of another form.
    """
    puzzles = tree(folder).puzzles
    records = _records(_file(folder, f"naive_{kind}"), ("ys",))
    if len(records) != len(puzzles):
        raise UsageError(f"The answers of {kind!r} are not to the {len(puzzles)} puzzles of the search.")
    return [
        tuple(right(answer, puzzle) for answer in record["ys"])
        for record, puzzle in zip(records, puzzles, strict=True)
    ]


def figures(folder: str | Path) -> dict[str, float]:
    """Recompute the results of the recordings: rates over the puzzles, and the areas under two curves."""
    recorded = tree(folder)
    puzzles, n = recorded.puzzles, len(recorded.puzzles)
    roots = [{operations(p)[text] for text in recorded.proposals.get(p, ())} for p in puzzles]
    result = {
        "tree search solves": sum(recorded.found) / n,
        "states with proposals": float(len(recorded.proposals)),
        "different successors of a root": sum(len(set(operations(p).values())) for p in puzzles) / n,
        "of these proposed": sum(map(len, roots)) / n,
        "roots with a solvable proposal": sum(any(map(solvable, root)) for root in roots) / n,
        "solvable within the proposals": sum(map(recorded.within, puzzles)) / n,
        "uniform over all operations": sum(map(uniform, puzzles)) / n,
        "uniform over the proposals": sum(map(recorded.uniform, puzzles)) / n,
    }
    for count in (3, 2):
        states = {left: judged for left, judged in recorded.values.items() if len(left) == count}
        judged = [(value, solvable(left)) for left, several in states.items() for value in several]
        result[f"area under the curve of the value, {count} left"] = _area(judged)
    for kind in ("standard", "cot"):
        rates = [sum(hits) / len(hits) for hits in samples(folder, kind) if hits]
        result[f"one answer, {kind}"] = sum(rates) / n
    return result


def _area(judged: Sequence[tuple[float, bool]]) -> float:
    """How probably a solvable state is judged above an unsolvable one; a tie counts half."""
    good, bad = [v for v, yes in judged if yes], [v for v, yes in judged if not yes]
    if not good or not bad:
        return float("nan")
    return sum((a > b) + (a == b) / 2 for a in good for b in bad) / (len(good) * len(bad))


def _file(folder: str | Path, part: str) -> Path:
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise UsageError(f"There is no folder {str(folder)!r}.")
    found = [path for path in sorted(root.rglob("*.json*")) if part in path.name and "game24" in path.parts]
    if not found:
        raise UsageError(
            f"{str(folder)!r} has no recordings of the Game of 24: a file *{part}*.json in a folder game24 "
            "is looked for, in a clone of github.com/princeton-nlp/tree-of-thought-llm."
        )
    return found[0]


def _records(path: Path, fields: Sequence[str]) -> list[dict[str, Any]]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            records = json.load(file)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise UsageError(f"{path} is damaged: {error}.") from None
    if not isinstance(records, list) or not records:
        raise UsageError(f"{path} holds no records.")
    for record in records:
        if not isinstance(record, dict) or not all(isinstance(record.get(field), list) for field in fields):
            raise UsageError(f"{path} has another format: a record has no list of {' and '.join(fields)}.")
    return records
