"""Checks settings against their declared types and ranges.

A range is part of the type, written with the package ``annotated_types``: ``Annotated[float, Gt(0)]``. The
settings of your own methods are checked in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval, Le

from hunch.core import UsageError

PositiveInt: TypeAlias = Annotated[int, Ge(1)]
NonNegativeInt: TypeAlias = Annotated[int, Ge(0)]
PositiveFloat: TypeAlias = Annotated[float, Gt(0)]
NonNegativeFloat: TypeAlias = Annotated[float, Ge(0)]
Share: TypeAlias = Annotated[float, Interval(ge=0, le=1)]
PositiveShare: TypeAlias = Annotated[float, Gt(0), Le(1)]
LATER: Mapping[str, Any] = MappingProxyType({"later": True})
"""Metadata of a setting that runs of earlier versions lack. While the setting has its default, it is left
out of a run's stored settings."""
MEMORY: Mapping[str, Any] = MappingProxyType({"memory": True})
"""Metadata of a setting that changes memory and speed alone: a run may go on with another value."""
LONGEST = 200
"""Maximum characters of a value that an error shows."""
Decay: TypeAlias = tuple[Share, Share, NonNegativeInt]
"""A value that changes linearly: start value, end value, and the number of environment steps in between."""


def stated(config: Any) -> dict[str, Any]:
    """Return the settings of a dataclass by name, nested ones too, without later ones at their defaults."""
    kept = {}
    for entry in fields(config):
        value = getattr(config, entry.name)
        if "later" not in entry.metadata or value != entry.default:
            kept[entry.name] = stated(value) if is_dataclass(value) else value
    return kept


def check_settings(config: Any, prefix: str = "") -> None:
    """Check that each setting has its declared type, is in range and finite, and is one of its choices.

    Args:
        config: A dataclass of settings; nested dataclasses are checked too.
        prefix: Prefix of the names of the settings in an error.

    Raises:
        UsageError: if a setting is wrong; the message names it.
    """
    hints = get_type_hints(type(config), include_extras=True)
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(hints[entry.name]) and is_dataclass(value):
            check_settings(value, f"{prefix}{entry.name}.")
        else:
            check_value(prefix + entry.name, value, hints[entry.name])


def check_fields(values: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Check values by name that were read from a file against declared types.

    Raises:
        UsageError: if a value is missing or has another type; the message begins with its name.
    """
    for name, hint in hints.items():
        if name not in values:
            raise UsageError(f"{name!r} is missing.")
        check_value(repr(name), values[name], hint)


def check_value(name: str, value: Any, hint: Any) -> None:
    """Check a value against a declared type.

    Raises:
        UsageError: if the value does not fit; the message begins with the name.
    """
    if not fits(value, hint) or is_dataclass(hint):
        raise UsageError(f"{name} must be {named(hint)}, not {_brief(value)}.")
    if isinstance(value, Real) and not isinstance(value, bool):
        _check_number(name, value, hint)
    elif isinstance(value, (tuple, list)) and get_origin(hint) is tuple:
        inner = get_args(hint)
        for place, item in enumerate(value):
            check_value(f"{name}[{place}]", item, inner[0 if inner[-1] is ... else place])
    elif isinstance(value, Mapping) and get_origin(hint) in (dict, Mapping):
        for key, item in value.items():
            check_value(f"{name}[{key!r}]", item, get_args(hint)[1])


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value has a declared type. An int counts as a float; a bool is not a number.

    A list counts as a tuple, because JSON has only lists. Types other than plain ones accept anything.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return fits(value, inner[0])
    if origin is Literal:
        return value in inner
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inner)
    if origin is tuple and inner:
        if not isinstance(value, (tuple, list)):
            return False
        items = inner[:1] * len(value) if inner[-1] is ... else inner
        return len(value) == len(items) and all(map(fits, value, items))
    if origin is list:
        return isinstance(value, list) and all(fits(item, inner[0]) for item in value)
    if origin in (dict, Mapping):
        keys, items = inner
        return isinstance(value, Mapping) and all(
            fits(key, keys) and fits(item, items) for key, item in value.items()
        )
    plain = {int: Integral, float: Real, str: str, bool: bool, type(None): type(None)}
    if hint not in plain:
        return True
    return isinstance(value, plain[hint]) and (hint is bool or not isinstance(value, bool))


def named(hint: Any) -> str:
    """Describe a declared type in words."""
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return named(inner[0])
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is list or (origin is tuple and inner[-1] is ...):
        return f"a list, each item {named(inner[0])}"
    if origin in (dict, Mapping):
        return "values by name" if inner[1] is Any else f"values by name, each {named(inner[1])}"
    if origin is tuple:
        return f"{len(inner)} values ({', '.join(map(named, inner))})"
    if origin in (Union, UnionType):
        return " or ".join(map(named, inner))
    return words.get(hint, "none" if hint is type(None) else f"a {getattr(hint, '__name__', hint)}")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _check_number(name: str, value: Real, hint: Any) -> None:
    number: Any = value
    try:
        finite = math.isfinite(number)
    except OverflowError:  # a whole number that no float can hold
        finite = False
    if not finite:
        raise UsageError(f"{name} must be a finite number, not {_brief(value)}.")
    for limit in _limits(hint):
        least, above, most = (getattr(limit, bound, None) for bound in ("ge", "gt", "le"))
        low = (least is not None and number < least) or (above is not None and number <= above)
        if low or (most is not None and number > most):
            raise UsageError(f"{name} must be {_WORDS[type(limit)].format(limit)}, not {value}.")


def _limits(hint: Any) -> list[Any]:
    """Return the ranges in a declared type, including those of its alternatives."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return [note for note in inner[1:] if type(note) in _WORDS]
    return [limit for each in inner for limit in _limits(each)] if origin in (Union, UnionType) else []


_WORDS = {Gt: "above {0.gt}", Ge: "at least {0.ge}", Le: "at most {0.le}", Interval: "from {0.ge} to {0.le}"}
