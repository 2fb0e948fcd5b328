"""Describes declared types of settings in words, for errors."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin


def named(hint: Any) -> str:
    """Describe a declared type in words."""
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return named(inner[0])
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is tuple and inner[-1] is ...:
        return f"a list, each item {named(inner[0])}"
    if origin is tuple:
        return f"{len(inner)} values ({', '.join(map(named, inner))})"
    if origin in (Union, UnionType):
        return " or ".join(map(named, inner))
    return words.get(hint, "none" if hint is type(None) else f"a {getattr(hint, '__name__', hint)}")
