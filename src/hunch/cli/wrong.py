"""Finds what is wrong with a command line that tyro refused, from the types of the options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

from hunch.cli.words import with_values

WORDS = {int: "a whole number", float: "a number", str: "a text", Path: "a path", NoneType: "None"}
"""Types of option values, described in words for messages."""

DASHES = ("-", "\u2013", "\u2014")
"""The dash of a keyboard, and those that a text program makes of two."""


@dataclass(frozen=True)
class Known:
    """An option or a positional argument that the command line knows."""

    name: str
    hint: Any
    required: bool
    positional: bool


def problem(cls: type[Any], arguments: Sequence[str]) -> str:
    """Return the first problem of a command line without unknown options; empty if none is found."""
    known = list(_known(cls))
    options = {flag: one for one in known if not one.positional for flag in _flags(one)}
    places = [one.name for one in known if one.positional]

    # What stands before the first option, and the options with their values.
    leading: list[str] = []
    given: list[tuple[str, list[str]]] = []
    for token, values in with_values(arguments):
        if not token.startswith("--"):
            leading = [token, *values]
            continue
        name, equals, value = token.partition("=")
        given.append((name, [value, *values] if equals else values))

    for token, _ in given:
        if _flag(token) in places:  # the name of an argument that takes no name
            return f"There is no option {token}"
    missing = _missing(known, {_flag(token) for token, _ in given}, leading)
    if missing:
        return missing
    for token, values in given:
        if _flag(token) in options:
            option = options[_flag(token)]
            misfit = _misfit(token, option.hint, values, loose=bool(places))
            if misfit and option.hint is bool and option.name == _flag(token):  # not its form with "no-"
                return f"{token} takes true or false, or no value, not {' '.join(values)!r}"
            if misfit:
                return misfit
    return ""


def _known(cls: type[Any], prefix: str = "") -> Iterator[Known]:
    """Yield the options of a dataclass, nested ones with a dotted name."""
    hints = get_type_hints(cls, include_extras=True)
    for entry in fields(cls):
        hint, marks = _bare(hints[entry.name])
        name = prefix + _dashed(entry.name)
        if isinstance(hint, type) and is_dataclass(hint):
            yield from _known(hint, prefix if entry.name.endswith("_") else f"{name}.")
            continue
        required = entry.default is MISSING and entry.default_factory is MISSING
        yield Known(name, hint, required, tyro.conf.Positional in marks)


def _bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without its annotations, and these."""
    return (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _flag(token: str) -> str:
    return _dashed(token.removeprefix("--"))


def _flags(option: Known) -> Iterator[str]:
    """Yield the names of an option; one that is on or off has two."""
    yield option.name
    if option.hint is bool:
        before, dot, last = option.name.rpartition(".")
        yield f"{before}{dot}no-{last}"


def _missing(known: Sequence[Known], given: set[str], leading: Sequence[str]) -> str:
    """Name the first required option or argument that is not given, or one argument too many."""
    for one in known:
        if one.required and one.positional and not leading:
            return f"The argument {one.name.upper()} is missing"
        if one.required and not one.positional and one.name not in given:
            return f"--{one.name} is missing"
    places = [one for one in known if one.positional]
    if len(leading) > len(places) and not any(get_origin(one.hint) is tuple for one in places):
        return f"{leading[len(places)]!r} is one argument too many"
    return ""


def _misfit(token: str, hint: Any, values: Sequence[str], loose: bool) -> str:
    """Say that values do not fit; if ``loose``, arguments may follow them."""
    numbers = range(len(values) + 1) if loose else [len(values)]  # of the values that may be the option's
    if any(_fits(hint, values[:n]) for n in numbers):
        return ""
    if not values:
        return f"{token} needs a value"
    if get_origin(hint) is Literal:
        return f"{token} must be one of {', '.join(map(str, get_args(hint)))}, not {' '.join(values)!r}"
    meant = next((value for value in values if len(value) > 2 and value[0] in DASHES), "")
    if meant:
        option = "--" + meant.lstrip("".join(DASHES))
        return f"{meant!r} begins with another dash than an option does: write {option}"
    return f"{token} takes {_words(hint)}, not {' '.join(values)!r}"


def _fits(hint: Any, values: Sequence[str]) -> bool:
    """Return whether the words on a command line are of a type."""
    hint, _ = _bare(hint)
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(part, values) for part in parts)
    if get_origin(hint) is tuple:
        each = parts[:1] * len(values) if parts[-1] is ... else parts
        return len(each) == len(values) and all(map(_fits, each, ([value] for value in values)))
    if hint is bool:
        return not values
    if len(values) != 1:
        return False
    if get_origin(hint) is Literal:
        return values[0] in map(str, parts)
    if hint is NoneType:
        return values[0] == "None"
    if hint in (int, float):
        return _is_number(hint, values[0])
    return True


def _is_number(kind: type[int] | type[float], value: str) -> bool:
    try:
        kind(value)
    except ValueError:
        return False
    return True


def _words(hint: Any) -> str:
    """Describe a type in words."""
    hint, _ = _bare(hint)
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_words, sorted(parts, key=lambda part: part is not NoneType)))
    if get_origin(hint) is tuple:
        listed = parts[-1] is ...
        each = ", ".join(map(_words, parts[:1] if listed else parts))
        return f"values (each {each})" if listed else f"{len(parts)} values ({each})"
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, parts))}"
    return "no value" if hint is bool else WORDS.get(hint, "another value")
