"""A minimal PDDL reader for the problem inside a game file. Nothing is evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator

Tree = str | list["Tree"]

_TOKEN = re.compile(r"[()]|[^\s()]+")
_COMMENT = re.compile(r";[^\n]*")
_DEEPEST = 100
_LONGEST = 200


def parse(text: str) -> list[Tree]:
    """Return the only parenthesised expression in ``text``, in lower case, as nested lists.

    Raises:
        ValueError: if parentheses do not match, nest too deep, or hold not exactly one expression, or a
            word cannot be printed or is too long.
    """
    stack: list[list[Tree]] = [[]]
    for token in _TOKEN.findall(_COMMENT.sub("", text.lower())):
        if token == "(":
            stack.append([])
        elif token != ")":
            if len(token) > _LONGEST or not token.isprintable():
                raise ValueError(f"a word cannot be printed or is longer than {_LONGEST} characters")
            stack[-1].append(token)
        elif len(stack) == 1:
            raise ValueError("a parenthesis closes that was never opened")
        else:
            done = stack.pop()
            stack[-1].append(done)
        if len(stack) > _DEEPEST:
            raise ValueError(f"parentheses nest deeper than {_DEEPEST}")
    if len(stack) > 1:
        raise ValueError(f"{len(stack) - 1} parentheses are never closed")
    return expression(stack[0][0] if len(stack[0]) == 1 else "")


def expression(tree: Tree) -> list[Tree]:
    """Return ``tree`` if it is a non-empty parenthesised expression.

    Raises:
        ValueError: if it is not.
    """
    if isinstance(tree, str) or not tree:
        raise ValueError("something other than one parenthesised expression stands where one belongs")
    return tree


def atom(tree: Tree) -> tuple[str, ...]:
    """Return an expression that consists of words only, as a tuple.

    Raises:
        ValueError: if it contains another expression.
    """
    words = tuple(part for part in expression(tree) if isinstance(part, str))
    if len(words) < len(tree):
        raise ValueError(
            f"an expression stands inside ({words[0] if words else ''} ...) where a word belongs"
        )
    return words


def typed(words: list[Tree]) -> Iterator[tuple[str, str]]:
    """Yield name and type of each member of a list such as ``a b - location c - agent``.

    Raises:
        ValueError: if a name has no type.
    """
    waiting: list[str] = []
    rest = iter(words)
    for word in rest:
        if not isinstance(word, str):
            raise ValueError("an expression stands in a list of names")
        if word != "-":
            waiting.append(word)
            continue
        kind = next(rest, None)
        if not isinstance(kind, str):
            raise ValueError("a dash in a list of names is not followed by a type")
        yield from ((name, kind) for name in waiting)
        waiting = []
    if waiting:
        raise ValueError(f"{waiting[0]} has no type")
