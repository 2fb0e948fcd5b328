"""A grammar of rewards: sums of weighted parts, each computed from the variables that an interface lists.

Writers that do not generate text draw from it: the scripted writer evenly, the similarity writer by how much
a quantity has to do with the task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

_VARIABLE = re.compile(r"^- (\w+): numpy array of shape \(n(?:, (\d+))?,?\)(?:, (.*))?$", re.MULTILINE)
_UNIT = re.compile(r"(?:^|, )in ([\w ]+)$")
_RANGE = re.compile(r"(?:^|, )(?:in|from) .*$")
_PART = re.compile(r"^    (\w+) = (-?\d+\.?\d*(?:e[+-]?\d+)?) \* (.+)$", re.MULTILINE)
WEIGHTS = (0.1, 1.0, 10.0)
SHAPES = ("{}", "({}) ** 2", "np.tanh({})", "np.exp(-np.abs({}))")
"""Functions of a quantity."""
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True)
class Variable:
    """A variable that a reward may read.

    Attributes:
        name: Its name in the program.
        size: Number of entries per step; 0 for one number per step.
        meaning: What it is, without unit and range.
        unit: Its unit; empty if none is stated.
    """

    name: str
    size: int
    meaning: str = ""
    unit: str = ""

    @property
    def description(self) -> str:
        """The variable in words."""
        return f"{self.name}, {self.meaning}" if self.meaning else self.name


@dataclass(frozen=True)
class Quantity:
    """One number per step, as code and in words."""

    code: str
    words: str


@dataclass(frozen=True)
class Part:
    """A part of a reward: weight times expression."""

    weight: float
    expression: str


Draw: TypeAlias = Callable[[], Part]
"""Draws a part from the grammar."""


def listed(text: str) -> tuple[Variable, ...]:
    """Return the variables that an interface lists."""
    return tuple(
        Variable(name, int(size or 0), _RANGE.sub("", description), "".join(_UNIT.findall(description)))
        for name, size, description in _VARIABLE.findall(text)
    )


def quantities(variables: Sequence[Variable]) -> tuple[Quantity, ...]:
    """Return the numbers that can be computed from one variable, or from two of the same size and unit."""
    listed_quantities: list[Quantity] = []
    for i, one in enumerate(variables):
        listed_quantities += _of_one(one)
        for other in variables[i + 1 :]:
            if (one.size, one.unit) == (other.size, other.unit):
                listed_quantities += _of_two(one, other)
    return tuple(listed_quantities)


def _of_one(one: Variable) -> Iterator[Quantity]:
    if not one.size:
        yield Quantity(f"({one.name})", f"the {one.description}")
        yield Quantity(f"np.abs({one.name})", f"the size of the {one.description}")
        return
    yield Quantity(f"np.linalg.norm({one.name}, axis=1)", f"the size of the {one.description}")
    for i in range(one.size):
        yield Quantity(f"({one.name})[:, {i}]", f"the {_ordinal(i)} coordinate of the {one.description}")


def _of_two(one: Variable, other: Variable) -> Iterator[Quantity]:
    code, words = f"{one.name} - {other.name}", f"between the {one.description}, and the {other.description}"
    if not one.size:
        yield Quantity(f"({code})", f"the difference {words}")
        yield Quantity(f"np.abs({code})", f"the distance {words}")
        return
    yield Quantity(f"np.linalg.norm({code}, axis=1)", f"the distance {words}")
    for i in range(one.size):
        yield Quantity(f"({code})[:, {i}]", f"the difference of the {_ordinal(i)} coordinates {words}")


def _ordinal(i: int) -> str:
    return ORDINALS[i] if i < len(ORDINALS) else f"{i + 1}th"


def drawn(quantity: Quantity, rng: np.random.Generator) -> Part:
    """Draw the sign, weight and shape of a part."""
    sign = (-1.0, 1.0)[int(rng.integers(2))]
    weight = WEIGHTS[int(rng.integers(len(WEIGHTS)))]
    return Part(sign * weight, SHAPES[int(rng.integers(len(SHAPES)))].format(quantity.code))


def evenly(choices: Sequence[Quantity], rng: np.random.Generator) -> Draw:
    """Return a draw in which all quantities are equally probable."""
    return lambda: drawn(choices[int(rng.integers(len(choices)))], rng)


def draft(draw: Draw, rng: np.random.Generator) -> list[Part]:
    """Draw the parts of a new reward: one to three."""
    return [draw() for _ in range(int(rng.integers(1, 4)))]


def parts_of(program: str) -> list[Part]:
    """Return the parts of a program of this grammar, including misspelt names; none for other programs."""
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


def damaged(part: Part, variables: Sequence[Variable], draw: Draw, rng: np.random.Generator) -> Part:
    """Return a part with an error: the wrong sign, another scale, another part, or a wrong variable."""
    kind = int(rng.integers(4))
    if kind == 0:
        return Part(-part.weight, part.expression)
    if kind == 1:
        return Part(part.weight * (0.01, 100.0)[int(rng.integers(2))], part.expression)
    if kind == 2:
        return draw()
    read = [one for one in variables if re.search(rf"\b{one.name}\b", part.expression)]
    if not read:
        return part
    old = read[int(rng.integers(len(read)))]
    others = [one for one in variables if one.size == old.size and one != old]
    new = others[int(rng.integers(len(others)))] if others else old
    return Part(part.weight, re.sub(rf"\b{old.name}\b", new.name, part.expression))
