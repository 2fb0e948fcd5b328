"""Genetic programming on Python's syntax trees: random changes of a function, without a model.

The changes use no knowledge of the problem, so any progress of a search is due to its choice of parents. This
writer is used to compare search rules with equal numbers of evaluations.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from hunch.envs.design.code import defined_last, flaw

TEMPLATES = (
    "np.abs({0})",
    "np.sqrt(np.abs({0}))",
    "np.exp(-np.abs({0}))",
    "np.log1p(np.abs({0}))",
    "np.minimum({0}, {1})",
    "np.maximum({0}, {1})",
    "np.where({0} < {1}, {2}, {3})",
    "np.sum({0})",
    "({0})[0]",
    "({0})[1]",
    "({0}) ** 2",
    "({0}) ** 3",
    "{0} == {1}",
    "{0} % 3",
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} / ({1} + 1e-6)",
)
"""Expressions that may be inserted into a program; placeholders are filled with other expressions."""

_SWAPS: dict[type, tuple[type, ...]] = {
    kind: group
    for group in (
        (ast.Add, ast.Sub, ast.Mult, ast.Div),
        (ast.Lt, ast.LtE, ast.Gt, ast.GtE),
        (ast.Eq, ast.NotEq),
        (ast.And, ast.Or),
    )
    for kind in group
}
DEPTH = 3
"""Maximum depth of a new random expression."""
_WHOLE = (ast.Expr, ast.Attribute, ast.Subscript, ast.JoinedStr, ast.FormattedValue)
"""Nodes whose children are not replaced."""
LARGEST = 200
"""Maximum number of nodes of a function; a larger result is drawn again."""


def mutate(programs: Sequence[str], function: str, rng: np.random.Generator) -> str:
    """Return a changed copy of the last program, with pieces of the others.

    Args:
        programs: Parents that define the function; those that do not parse are ignored.
        function: The function to change.
        rng: Random generator.

    Returns:
        The whole program with its function changed; empty if no parent can be changed.
    """
    trees = [tree for program in programs if (tree := _tree(program, function)) is not None]
    if not trees:
        return ""
    functions = [_function(tree, function) for tree in trees]
    lenders = [lender for lender in functions if any(True for _ in _expressions(lender))]
    source = ast.unparse(trees[-1])
    for _ in range(20):
        tree = ast.parse(source)
        body = _function(tree, function)
        for _ in range(1 + int(rng.geometric(0.6))):
            _change(body, lenders, rng)
        child = ast.unparse(ast.fix_missing_locations(tree))
        if child != source and sum(1 for _ in ast.walk(body)) <= LARGEST and not flaw(child):
            return "import numpy as np\n\n" + child if "import numpy" not in child else child
    return source


def _tree(program: str, function: str) -> ast.Module | None:
    if flaw(program):
        return None
    tree = ast.parse(program)
    return tree if defined_last(tree.body, function) is not None else None


def _function(tree: ast.Module, function: str) -> ast.FunctionDef:
    """Return the definition that counts of a function that a program has."""
    definition = defined_last(tree.body, function)
    assert definition is not None  # see _tree
    return definition


# ---- changes ----------------------------------------------------------------------------------------------


def _change(body: ast.FunctionDef, lenders: Sequence[ast.FunctionDef], rng: np.random.Generator) -> None:
    places = list(_expressions(body))
    if not places:
        return
    place = places[int(rng.integers(len(places)))]
    changes: tuple[Callable[[], ast.expr], ...] = (
        lambda: _number(place.here, rng),
        lambda: _swapped(place.here, rng),
        lambda: _grown(body, place.here, rng),
        lambda: _drawn(body, rng),
        lambda: _lent(lenders, rng),
        lambda: _inner(place.here, rng),
    )
    weights = np.array([3, 2, 3, 3, 2, 1], dtype=float)
    chosen = int(rng.choice(len(changes), p=weights / weights.sum()))
    if chosen == 0 and not _numbers(place.here):  # a number to change may be anywhere
        numbered = [p for p in places if isinstance(p.here, ast.Constant) and _numbers(p.here)]
        place = numbered[int(rng.integers(len(numbered)))] if numbered else place
    place.put(changes[chosen]())


class _Place:
    """An expression of a tree, with its parent."""

    def __init__(self, parent: ast.AST, field: str, index: int | None, here: ast.expr) -> None:
        self.parent, self.field, self.index, self.here = parent, field, index, here

    def put(self, new: ast.expr) -> None:
        if self.index is None:
            setattr(self.parent, self.field, new)
        else:
            getattr(self.parent, self.field)[self.index] = new


def _expressions(body: ast.FunctionDef) -> Iterator[_Place]:
    """Yield the expressions of a function that are read, not those assigned to, called or unpacked."""
    for statement in body.body:
        for parent in ast.walk(statement):
            for field, value in ast.iter_fields(parent):
                if field in ("func", "slice", "targets", "target", "ctx", "ops", "op"):
                    continue
                several = value if isinstance(value, list) else [value]
                for index, child in enumerate(several):
                    if _is_value(parent, child):
                        yield _Place(parent, field, index if isinstance(value, list) else None, child)


def _is_value(parent: ast.AST, child: object) -> bool:
    """Return whether an expression can be replaced by another."""
    if not isinstance(child, ast.expr) or isinstance(parent, _WHOLE):
        return False
    if isinstance(child, ast.Constant) and isinstance(child.value, str):
        return False
    return isinstance(getattr(child, "ctx", ast.Load()), ast.Load)


def _numbers(node: ast.AST) -> list[ast.Constant]:
    return [
        n
        for n in ast.walk(node)
        if isinstance(n, ast.Constant) and type(n.value) in (int, float) and not isinstance(n.value, bool)
    ]


def _copied(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


def _number(node: ast.expr, rng: np.random.Generator) -> ast.expr:
    """Return the expression with one of its numbers changed."""
    new = _copied(node)
    numbers = _numbers(new)
    if numbers:
        one = numbers[int(rng.integers(len(numbers)))]
        value = one.value
        if isinstance(value, int) and rng.random() < 0.5:
            one.value = value + int(rng.choice([-1, 1]))
        else:
            scale, shift = float(np.exp(rng.normal(0, 0.7))), float(rng.normal(0, 0.02))
            one.value = round(float(str(value)) * scale + shift, 4)
    return new


def _swapped(node: ast.expr, rng: np.random.Generator) -> ast.expr:
    """Return the expression with one of its operators replaced, or its sign changed."""
    new = _copied(node)
    operations = [n for n in ast.walk(new) if isinstance(n, (ast.BinOp, ast.BoolOp, ast.Compare))]
    if not operations or rng.random() < 0.25:
        return ast.UnaryOp(ast.USub(), new)
    one = operations[int(rng.integers(len(operations)))]
    old = one.ops[0] if isinstance(one, ast.Compare) else one.op
    others = [kind for kind in _SWAPS.get(type(old), ()) if kind is not type(old)]
    if others:
        operator = others[int(rng.integers(len(others)))]()
        if isinstance(one, ast.Compare):
            one.ops[0] = operator
        else:
            one.op = operator
    return new


def _grown(body: ast.FunctionDef, node: ast.expr, rng: np.random.Generator) -> ast.expr:
    """Return a larger expression that contains this one."""
    template = TEMPLATES[int(rng.integers(len(TEMPLATES)))]
    places = template.count("{")
    place = int(rng.integers(places))
    parts = [ast.unparse(node if i == place else _leaf(body, rng)) for i in range(places)]
    return ast.parse(template.format(*(f"({part})" for part in parts)), mode="eval").body


def _drawn(body: ast.FunctionDef, rng: np.random.Generator, depth: int = DEPTH) -> ast.expr:
    """Return a new random expression (subtree mutation, Koza 1992)."""
    if depth == 0 or rng.random() < 0.2:
        return _leaf(body, rng)
    template = TEMPLATES[int(rng.integers(len(TEMPLATES)))]
    parts = [ast.unparse(_drawn(body, rng, depth - 1)) for _ in range(template.count("{"))]
    return ast.parse(template.format(*(f"({part})" for part in parts)), mode="eval").body


def _lent(lenders: Sequence[ast.FunctionDef], rng: np.random.Generator) -> ast.expr:
    """Return a piece of a parent."""
    lender = lenders[int(rng.integers(len(lenders)))]
    places = list(_expressions(lender))
    return _copied(places[int(rng.integers(len(places)))].here)


def _inner(node: ast.expr, rng: np.random.Generator) -> ast.expr:
    """Return a piece of the expression, which replaces it."""
    inner = [n for n in ast.walk(node) if isinstance(n, ast.expr) and n is not node and _is_value(node, n)]
    inner = [n for n in inner if not (isinstance(n, ast.Name) and n.id == "np")]
    return _copied(inner[int(rng.integers(len(inner)))]) if inner else node


def _leaf(body: ast.FunctionDef, rng: np.random.Generator) -> ast.expr:
    """Return a number, a parameter, or a name that the function assigns."""
    names = [arg.arg for arg in body.args.args]
    names += [
        n.id
        for statement in body.body
        for n in ast.walk(statement)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    if rng.random() < 0.35:
        numbers = (0.0, 0.5, 1.0, 2.0, 3.0, 10.0, round(float(rng.normal()), 3))
        return ast.parse(repr(numbers[int(rng.integers(len(numbers)))]), mode="eval").body
    return ast.Name(names[int(rng.integers(len(names)))] if names else "np", ast.Load())
